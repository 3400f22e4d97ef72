; A statement with a block folds below its header, a `marginalize` or a `lexicon` likewise.
(statement (block)) @fold
(block (block) @fold)
