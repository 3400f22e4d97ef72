"""One short file per LSP method, registered with `language_server.server`: find the snapshot, convert the position, ask
`qvr_core.ide`, convert back.  Nothing of the analyser is imported before a feature is asked: `initialize` is answered
from what is here.
"""

from qvr_lsp.features import call_hierarchy as call_hierarchy
from qvr_lsp.features import code_actions as code_actions
from qvr_lsp.features import code_lens as code_lens
from qvr_lsp.features import commands as commands
from qvr_lsp.features import completion as completion
from qvr_lsp.features import configuration as configuration
from qvr_lsp.features import data_preview as data_preview
from qvr_lsp.features import diagnostics as diagnostics
from qvr_lsp.features import diagrams as diagrams
from qvr_lsp.features import document_links as document_links
from qvr_lsp.features import document_symbols as document_symbols
from qvr_lsp.features import formatting as formatting
from qvr_lsp.features import hover as hover
from qvr_lsp.features import inlay_hints as inlay_hints
from qvr_lsp.features import live as live
from qvr_lsp.features import model as model
from qvr_lsp.features import navigation as navigation
from qvr_lsp.features import ranges as ranges
from qvr_lsp.features import rename as rename
from qvr_lsp.features import run_data as run_data
from qvr_lsp.features import semantic_tokens as semantic_tokens
from qvr_lsp.features import session as session
from qvr_lsp.features import signature_help as signature_help
from qvr_lsp.features import synchronisation as synchronisation
from qvr_lsp.language_server import server as server
