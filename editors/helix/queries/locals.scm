; Names and where they hold.  A program, function or deduction is a scope, and so is what binds an index.
(source_file) @local.scope
(statement (block)) @local.scope
(comprehension) @local.scope
(factor) @local.scope
(lambda) @local.scope

(object_decl (names (name) @local.definition.type))
(morphism_decl (names (name) @local.definition.function))
(let_decl name: (name) @local.definition.function)
(import_item name: (name) @local.definition.import)
(import_decl name: (name) @local.definition.import)
(data_step (names (name) @local.definition.var))
(param_step (names (name) @local.definition.var))
(parameter name: (name) @local.definition.parameter)
(def_parameter name: (name) @local.definition.parameter)
(family_parameter name: (name) @local.definition.parameter)
(pattern (name) @local.definition.var)
(observe_step name: (name) @local.definition.var)
(predict_step name: (name) @local.definition.var)
(marginalize_step name: (name) @local.definition.var)
(binder . (name) @local.definition.var)
(factor_index . (name) @local.definition.var)
(lambda . (name) @local.definition.parameter)

(variable (name) @local.reference)
(object_ref (name) @local.reference)
(size (name) @local.reference)
(arrow_ref (name) @local.reference)
(arrow_call . (name) @local.reference)
(arith_call . (name) @local.reference)
(draw (name) @local.reference)
(return_step (name) @local.reference)
(return_item (name) @local.reference)
