(object_decl (names (name) @name)) @definition.type
(morphism_decl (names (name) @name)) @definition.function
(let_decl name: (name) @name) @definition.function
(program_header name: (name) @name) @definition.function
(def_decl name: (name) @name) @definition.function
(def_header name: (name) @name) @definition.function
(family_header name: (name) @name) @definition.class
(composition_header name: (name) @name) @definition.class
(deduction_header name: (name) @name) @definition.class
(transformation_header name: (name) @name) @definition.function
(encoder_header name: (name) @name) @definition.function
(decoder_header name: (name) @name) @definition.function
(data_type_decl name: (name) @name) @definition.class
(draw (name) @name) @reference.call
(arrow_call . (name) @name) @reference.call
(arith_call . (name) @name) @reference.call
