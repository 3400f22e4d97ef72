;;; Opens broken.qvr in a folder, and asks for what eglot shows of it.  -*- lexical-binding: t -*-

(defvar folder (pop command-line-args-left))
(defvar mode-folder (pop command-line-args-left))
(defvar python (pop command-line-args-left))

;; where Debian puts eglot; newer versions of Emacs have it inside
(dolist (place (file-expand-wildcards "/usr/share/emacs/site-lisp/elpa/*"))
  (add-to-list 'load-path place))
(add-to-list 'load-path mode-folder)
(require 'qvr-mode)
(require 'eglot)
(setq qvr-server-command (list python "-m" "qvr_core.cli" "lsp")
      eglot-autoshutdown t
      eglot-connect-timeout 60
      eglot-sync-connect 60
      flymake-no-changes-timeout 0)

(defun wait-for (what ready)
  "Let the server work until READY gives something, which is returned; WHAT it is, is said where it does not come."
  (let ((left 300) found)
    (while (and (not (setq found (funcall ready))) (> left 0))
      (accept-process-output nil 0.2)
      (setq left (1- left)))
    (unless found
      (princ (format "no %s\n" what))
      (kill-emacs 1))
    found))

(defun say (what &rest values)
  (princ (format "%s: %s\n" what (mapconcat (lambda (value) (format "%s" value)) values " "))))

(find-file (expand-file-name "broken.qvr" folder))
(say "mode" major-mode)
(font-lock-ensure)
(goto-char (point-min))
(say "face" (get-text-property (point) 'face))
(search-forward "Normal")
(say "family" (get-text-property (match-beginning 0) 'face))

(eglot-ensure)
(unless (eglot-current-server)
  (apply #'eglot (eglot--guess-contact)))
(wait-for "server" #'eglot-current-server)
(flymake-mode 1)

(let ((found (wait-for "diagnostics" (lambda () (flymake-start) (flymake-diagnostics)))))
  (dolist (diagnostic found)
    (say "diagnostic"
         (line-number-at-pos (flymake-diagnostic-beg diagnostic))
         (buffer-substring (flymake-diagnostic-beg diagnostic) (flymake-diagnostic-end diagnostic))
         (flymake-diagnostic-text diagnostic))))

(goto-char (point-min))
(search-forward "cell : ")
(goto-char (match-beginning 0))
(let ((hover (jsonrpc-request (eglot--current-server-or-lose) :textDocument/hover (eglot--TextDocumentPositionParams))))
  (say "hover" (replace-regexp-in-string "\n" " " (format "%s" (plist-get (plist-get hover :contents) :value)))))

(goto-char (point-max))
(insert "export ce")
(let* ((completion (eglot-completion-at-point))
       (table (nth 2 completion)))
  (say "completion" (all-completions (buffer-substring (nth 0 completion) (nth 1 completion)) table)))

(set-buffer-modified-p nil)
(eglot-shutdown (eglot-current-server))
(say "done")
(kill-emacs 0)
