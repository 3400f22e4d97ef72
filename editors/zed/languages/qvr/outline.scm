(object_decl "object" @context (names (name) @name)) @item
(morphism_decl "morphism" @context (names (name) @name)) @item
(let_decl name: (name) @name) @item
(program_header "program" @context name: (name) @name) @item
(def_decl "def" @context name: (name) @name) @item
(def_header "def" @context name: (name) @name) @item
(family_header "family" @context name: (name) @name) @item
(transformation_header "transformation" @context name: (name) @name) @item
(encoder_header "encoder" @context name: (name) @name) @item
(decoder_header "decoder" @context name: (name) @name) @item
(data_type_decl "data" @context "type" @context name: (name) @name) @item
(composition_header "composition" @context name: (name) @name) @item
(deduction_header "deduction" @context name: (name) @name) @item
