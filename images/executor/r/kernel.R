# Starts IRkernel. Its errors are told in the common form: the calls of the user's own functions, with the line of the cell or the file
# that they were made in, then the message, once. IRkernel would add the calls by which it and `evaluate` caught the error.
# Values are text as R prints it, and HTML for people; Markdown would stand for the text, with characters escaped.
local({
  options(keep.source = TRUE, jupyter.display_mimetypes = setdiff(getOption("jupyter.display_mimetypes"), c("text/markdown", "text/latex")))
  most <- 20 # calls that are told

  # Where a call was made: "File path:line" or "Cell In[1], line 2", and the line itself; NULL for code that comes from neither.
  place <- function(call) {
    ref <- attr(call, "srcref")
    file <- attr(ref, "srcfile")
    if (is.null(file$filename) || !nzchar(file$filename) || startsWith(file$filename, "<")) return(NULL)
    in_cell <- startsWith(file$filename, "Cell In[")
    path <- if (in_cell || startsWith(file$filename, "/")) file$filename else file.path(file$wd, file$filename)
    line <- tryCatch(getSrcLines(file, ref[[1]], ref[[1]]), error = function(e) character())
    where <- sprintf(if (in_cell) "%s, line %d" else "File %s:%d", path, ref[[1]])
    list(where = where, line = sprintf("----> %d %s", ref[[1]], substr(line, 1, 300)), alone = sum(nzchar(file$lines)) == 1)
  }

  # The user's own functions among the calls of which something has failed, the outermost first; if there are none, the line of a cell
  # that has others.
  frames <- function(calls) {
    calls <- sys.calls()
    own <- Filter(function(i) identical(topenv(environment(sys.function(i))), globalenv()), seq_along(calls))
    if (!length(own)) {
      at <- Find(Negate(is.null), lapply(calls, place))
      return(if (!is.null(at) && !at$alone) paste(at$where, at$line, sep = "\n") else character())
    }
    told <- vapply(own, function(i) {
      at <- if (i < length(calls)) place(calls[[i + 1]])
      said <- substr(paste(deparse(calls[[i]], nlines = 1), collapse = ""), 1, 200)
      if (is.null(at)) paste("In", said) else paste(c(paste0(at$where, ", in ", said), at$line), collapse = "\n")
    }, "")
    runs <- rle(told) # a function that calls itself
    told <- unlist(Map(function(one, times) {
      c(one, if (times > 1) sprintf("    [... %d more calls like this one ...]", times - 1L))
    }, runs$values, runs$lengths), use.names = FALSE)
    left <- length(told) - most
    if (left <= 0) return(told)
    c(head(told, most / 4), sprintf("    [... %d more calls ...]", left), tail(told, most - most / 4))
  }
  assignInNamespace("format_stack", function(calls) tryCatch(frames(calls), error = function(e) character()), "IRkernel")

  message_of <- function(text) {
    text <- sub("^Error in parse\\([^\n]*?\\): (?:<text>|Cell In\\[[0-9]+\\]):([0-9]+):([0-9]+): ([^\n]*)", "Error: \\3 (line \\1, column \\2)", text, perl = TRUE)
    text <- sub("^Error in eval\\(expr, envir[^)\n]*\\): ", "Error: ", text) # an older evaluate's
    colours <- "(?:\033\\[[0-9;]*m)*"
    text <- sub(sprintf("^(%1$sError[^\n]*:%1$s)\n%1$s!%1$s ", colours), "\\1 ", text, perl = TRUE) # rlang's
    sub("\\s+$", "", text)
  }

  # A warning is one line where R's own would be, without the call by which a cell is evaluated. A message has its line's end itself, but
  # for rlang's; IRkernel would add an empty line.
  tell_warning <- function(condition) {
    call <- if (!is.null(conditionCall(condition))) deparse(conditionCall(condition), nlines = 1)[[1]]
    where <- if (!is.null(call) && !startsWith(call, "eval(expr, envir")) paste(" in", call)
    executor$stream(paste0("Warning", where, ": ", conditionMessage(condition), "\n"), "stderr")
  }
  tell_message <- function(condition) {
    executor$stream(paste0(conditionMessage(condition), if (inherits(condition, "rlang_message")) "\n"), "stderr")
  }

  # A value is the result of its expression and no display, which is told at greater length.
  of_value <- FALSE
  tell_value <- function(obj, visible) {
    of_value <<- TRUE
    on.exit(of_value <<- FALSE)
    executor$handle_value(obj, visible)
  }

  # repr's text of a table is made of strings, without a tibble's head, and does not tell the size of what it leaves out. A class that
  # prints itself does so here, too; of what else is large, the first and the last rows and columns are shown, and its size is told.
  prints_itself <- function(obj) {
    own <- setdiff(class(obj), c("data.frame", "matrix", "array"))
    any(vapply(own, function(name) !is.null(getS3method("print", name, optional = TRUE)), NA))
  }
  ends <- function(n, most) if (n <= most) seq_len(n) else c(seq_len(most %/% 2), seq(to = n, length.out = most %/% 2))
  large <- function(obj, row, col) {
    part <- obj[row, col, drop = FALSE]
    cells <- as.matrix(format(as.data.frame(part), na.encode = FALSE), rownames.force = TRUE)
    if (is.matrix(obj)) {
      rownames(cells) <- if (is.null(rownames(part))) format(sprintf("[%d,]", row), justify = "right") else rownames(part)
      colnames(cells) <- if (is.null(colnames(part))) sprintf("[,%d]", col) else colnames(part)
    }
    half <- seq_len(length(row) / 2)
    if (length(row) < nrow(obj)) cells <- rbind(cells[half, , drop = FALSE], "\u22ee" = "\u22ee", cells[-half, , drop = FALSE])
    half <- seq_len(length(col) / 2)
    if (length(col) < ncol(obj)) cells <- cbind(cells[, half, drop = FALSE], "\u22ef" = "\u22ef", cells[, -half, drop = FALSE])
    print(cells, quote = FALSE, right = TRUE)
    cat("#", paste(format(dim(obj), big.mark = ",", trim = TRUE), c("rows", "columns"), collapse = " \u00d7 "))
  }
  table_text <- function(obj, ..., rows = getOption("repr.matrix.max.rows"), cols = getOption("repr.matrix.max.cols")) {
    small <- nrow(obj) <= rows && ncol(obj) <= cols
    lines <- capture.output(if (small || prints_itself(obj)) print(obj) else large(obj, ends(nrow(obj), rows), ends(ncol(obj), cols)))
    paste(lines, collapse = "\n")
  }
  for (kind in c("data.frame", "data.table", "matrix")) registerS3method("repr_text", kind, table_text, asNamespace("repr"))
  # Of more than so many elements the text would be cut anyway, and takes seconds to make. Who sets the option gets what it says.
  most <- getOption("max.print")
  registerS3method("repr_text", "default", function(obj, ...) {
    before <- options(max.print = if (identical(getOption("max.print"), most)) min(most, 5000) else getOption("max.print"))
    on.exit(options(before))
    paste(capture.output(print(obj)), collapse = "\n")
  }, asNamespace("repr"))

  # A value that cannot be printed has failed, a plot of a column that is not there say: IRkernel would tell that on stderr and go on.
  assignInNamespace("prepare_mimebundle_kernel", function(obj, handle_display_error) {
    text <- repr::repr_text(obj)
    if (is.null(text) || !nzchar(text)) return(list())
    rich <- if (getOption("jupyter.rich_display")) setdiff(getOption("jupyter.display_mimetypes"), "text/plain")
    bundle <- list(metadata = namedlist())
    if (length(rich)) bundle <- IRdisplay::prepare_mimebundle(obj, rich, error_handler = handle_display_error)
    bundle$data[["text/plain"]] <- text
    bundle
  }, "IRkernel")

  # Nobody answers its prompt, and the end of input would have it step through whatever runs after it.
  replace_in_package("base", "browser", function(text = "", condition = NULL, expr = TRUE, skipCalls = 0L) {
    if (isTRUE(as.logical(expr))) message("browser() is passed over: nobody can answer it here")
    invisible()
  })
  # These would have it print each step of the function.
  for (name in c("debug", "debugonce")) local({
    said <- paste0(name, "() is passed over: nobody can answer it here")
    replace_in_package("base", name, function(fun, text = "", condition = NULL, signature = NULL) {
      message(said)
      invisible()
    })
  })

  # What reads standard input would find its end, as if there were no data. The functions keep their own bodies.
  unanswered <- function(name) stop("nobody can answer ", name, "() here: put the value into the code", call. = FALSE)
  is_stdin <- function(con) {
    identical(con, "stdin") || inherits(con, c("terminal", "file")) && tryCatch(summary(con)$description == "stdin", error = function(e) FALSE)
  }
  replace_in_package("base", "readLines", local({
    read <- base::readLines
    body(read) <- bquote({
      if (.(is_stdin)(con)) .(unanswered)("readLines")
      .(body(read))
    })
    compiler::cmpfun(read)
  }))
  replace_in_package("base", "scan", local({
    read <- base::scan
    body(read) <- bquote({
      if (missing(text) && (identical(file, "") || .(is_stdin)(file))) .(unanswered)("scan")
      .(body(read))
    })
    compiler::cmpfun(read)
  }))

  # What base's functions say of a call that is made here is said of the user's own.
  said_of <- function(call, value) {
    tryCatch(withCallingHandlers(value, warning = function(w) {
      warning(simpleWarning(conditionMessage(w), call))
      invokeRestart("muffleWarning")
    }), error = function(e) stop(simpleError(conditionMessage(e), call)))
  }

  # What programs print would go to the kernel's own output, which is nobody's. It is shown when they have ended, or are stopped.
  showing <- function(run) {
    file <- tempfile("printed")
    on.exit({
      lines <- if (file.exists(file)) readLines(file, warn = FALSE, skipNul = TRUE)
      unlink(file)
      cat(paste0(iconv(lines, "", "UTF-8", sub = "byte"), "\n", recycle0 = TRUE), sep = "")
    })
    invisible(run(file))
  }
  replace_in_package("base", "system", local({
    run <- base::system
    function(command, intern = FALSE, ignore.stdout = FALSE, ignore.stderr = FALSE, wait = TRUE, ...) {
      hidden <- isTRUE(intern) || !isTRUE(wait) || !is.character(command)
      said_of(sys.call(), if (hidden) run(command, intern, ignore.stdout, ignore.stderr, wait, ...) else {
        showing(function(file) run(paste0("exec >", file, " 2>&1; ", command), FALSE, ignore.stdout, ignore.stderr, TRUE, ...))
      })
    }
  }))
  replace_in_package("base", "system2", local({
    run <- base::system2
    function(command, args = character(), stdout = "", stderr = "", stdin = "", input = NULL, env = character(), wait = TRUE, ...) {
      hidden <- !isTRUE(wait) || !identical(stdout, "")
      said_of(sys.call(), if (hidden) run(command, args, stdout, stderr, stdin, input, env, wait, ...) else {
        showing(function(file) run(command, args, file, if (identical(stderr, "")) file else stderr, stdin, input, env, TRUE, ...))
      })
    }
  }))

  # evaluate hands on what an expression prints when it has ended. It does so here while cat() prints and before Sys.sleep(), ten times a
  # second at most, and when the expression is interrupted, or that would be lost. The functions keep their own bodies and are
  # compiled, as they were: R names them in errors then.
  last <- 0
  hand_on <- function(pause) {
    now <- proc.time()[[3]]
    if (now - last < pause) return(invisible())
    last <<- now
    evaluate::flush_console()
  }
  replace_in_package("base", "cat", local({
    cat <- base::cat
    body(cat) <- bquote({
      .(body(cat))
      if (identical(file, stdout())) .(hand_on)(0.1)
      invisible()
    })
    compiler::cmpfun(cat)
  }))
  replace_in_package("base", "Sys.sleep", local({
    sleep <- base::Sys.sleep
    body(sleep) <- bquote({
      .(hand_on)(0)
      .(body(sleep))
    })
    compiler::cmpfun(sleep)
  }))
  # A forked process, as of mclapply(), has copies of the kernel's sockets and of the file that output is collected in, and must use
  # neither. What it prints goes into another file, from which the kernel shows what is new before anything else that it sends. The file
  # goes when all of them have ended, unless one was let go, of which R does not tell that.
  kernel_id <- Sys.getpid()
  forked <- list(path = tempfile("forked"), told = 0, out = NULL, let_go = FALSE)
  setHook(packageEvent("parallel", "onLoad"), function(...) {
    fork <- parallel:::mcfork
    replace_in_package("parallel", "mcfork", function(estranged = FALSE) {
      forked$let_go <<- forked$let_go || estranged
      process <- fork(estranged)
      if (Sys.getpid() != kernel_id) sink(forked$out <<- file(forked$path, "a"))
      process
    })
    leave <- parallel:::mcexit
    replace_in_package("parallel", "mcexit", function(...) {
      if (!is.null(forked$out)) flush(forked$out)
      leave(...)
    })
  })
  new_of_forked <- function() {
    if (!file.exists(forked$path)) return(NULL)
    ended <- !forked$let_go && !length(parallel:::children())
    text <- newer_of_forked()
    if (ended) {
      unlink(forked$path)
      forked$told <<- 0
    }
    text
  }
  newer_of_forked <- function() {
    size <- file.size(forked$path)
    if (size <= forked$told) return(NULL)
    from <- file(forked$path, "rb")
    on.exit(close(from))
    seek(from, forked$told)
    bytes <- readBin(from, "raw", size - forked$told)
    forked$told <<- forked$told + length(bytes)
    iconv(list(bytes[bytes != 0]), "", "UTF-8", sub = "byte")
  }

  # quit() ends the kernel behind the cell: IRkernel's would let the cell go on until then.
  quit <- function(...) {
    executor$quit(...)
    invokeRestart("cell_ends")
  }
  replace_in_env("evaluate", function(input, envir = NULL, ..., output_handler) {
    if (is.null(envir)) return(evaluate::evaluate(input, ..., output_handler = output_handler)) # no cell
    cell <- sprintf("Cell In[%d]", executor$execution_count)
    if (!executor$is_silent()) output_handler[c("warning", "message", "value")] <- list(tell_warning, tell_message, tell_value)
    for (name in c("quit", "q")) replace_in_package("base", name, quit) # which execute() has replaced just before
    withRestarts(cell_ends = function() NULL, withCallingHandlers(interrupt = function(condition) hand_on(0), allowInterrupts({
      evaluate::evaluate(input, envir, ..., output_handler = output_handler, filename = cell)
    })))
  }, parent.env(asNamespace("IRkernel")))

  # evaluate takes the expressions of one line for one: an older one goes on with the rest of the line after an error, and shows the value
  # before it once more. It also loses an error for which R has no stack left to call its handler: that one is raised anew, above the calls.
  # In braces, R knows an expression's line when it fails.
  with_line <- function(i, exprs) {
    ref <- attr(exprs, "srcref")[[i]]
    if (is.null(ref)) exprs[i] else as.expression(structure(call("{", exprs[[i]]), srcref = list(ref, ref)))
  }
  parse_all <- evaluate::parse_all
  replace_in_env("parse_all", function(...) {
    parsed <- parse_all(...)
    if (!is.null(attr(parsed, "PARSE_ERROR"))) return(parsed)
    one_by_one <- lapply(parsed$expr, function(exprs) if (length(exprs)) lapply(seq_along(exprs), with_line, exprs) else list(NULL))
    data.frame(src = rep(parsed$src, lengths(one_by_one)), expr = I(unlist(one_by_one, recursive = FALSE)))
  }, asNamespace("evaluate"))
  if (exists("eval_with_user_handlers", asNamespace("evaluate"), inherits = FALSE)) {
    eval_expression <- get("eval_with_user_handlers", asNamespace("evaluate"))
    raise_anew <- function(...) tryCatch(eval_expression(...), stackOverflowError = stop)
    replace_in_env("eval_with_user_handlers", raise_anew, asNamespace("evaluate"))
  }

  # A newer evaluate drops what tells the lines of a cell.
  if (exists("removeSource", parent.env(asNamespace("evaluate")), inherits = FALSE)) {
    replace_in_env("removeSource", identity, parent.env(asNamespace("evaluate")))
  }

  kernel <- IRkernel:::Kernel$new(connection_file = commandArgs(TRUE)[[1]])
  executor <- kernel$executor

  # What is to be evaluated beside a cell, as by who asks for the variables: IRkernel leaves it out. Assignments in it define no name.
  beside <- new.env(parent = globalenv())
  beside$cellblock <- new.env(parent = asNamespace("IRkernel"))
  args <- commandArgs()
  here <- dirname(args[[match("-f", args) + 1]])
  for (name in c("variables.R", "saved.R")) sys.source(file.path(here, name), beside$cellblock)
  failed <- function(name, message) list(status = "error", ename = name, evalue = message, traceback = list())
  evaluated <- function(expression) {
    tryCatch(allowInterrupts({
      value <- eval(parse(text = expression, keep.source = FALSE), new.env(parent = beside))
      bundle <- if (inherits(value, "cellblock_answer")) unclass(value) else prepare_mimebundle_kernel(value, executor$handle_display_error)$data
      list(status = "ok", data = bundle, metadata = namedlist())
    }), error = function(e) failed("Error", conditionMessage(e)), interrupt = function(e) failed("Interrupt", "it was interrupted"))
  }

  send_response <- executor$send_response
  send <- function(...) suspendInterrupts(send_response(...)) # whose parts are sent one by one
  executor$send_response <- function(msg_type, parent_msg, socket_name, content) {
    if (Sys.getpid() != kernel_id) {
      if (msg_type == "stream") cat(content$text)
      return(invisible())
    }
    text <- new_of_forked()
    if (!is.null(text)) send("stream", parent_msg, "iopub", list(name = "stdout", text = text))
    if (msg_type == "input_request" && !isTRUE(parent_msg$content$allow_stdin)) { # IRkernel would wait for ever
      unanswered("readline")
    }
    asked <- parent_msg$content$user_expressions
    if (msg_type == "execute_reply" && content$status == "ok" && length(asked)) content$user_expressions <- lapply(asked, evaluated)
    if (!is.null(content$ename)) {
      content$evalue <- message_of(content$evalue)
      content$traceback <- as.list(c(content$traceback[-1], content$evalue))
    }
    for (one in content$payload) { # what a pager would show, as of ?lm, is output here
      if (identical(one$source, "page")) send("display_data", parent_msg, "iopub", list(data = one$data, metadata = setNames(list(), character())))
    }
    if (of_value && msg_type == "display_data") {
      msg_type <- "execute_result"
      content$execution_count <- executor$execution_count
    }
    send(msg_type, parent_msg, socket_name, content)
  }

  # An interrupt that comes beside a cell, while it is made ready or its last plot is sent, would end the kernel.
  handle_shell <- kernel$handle_shell
  unlockBinding("handle_shell", as.environment(kernel))
  assign("handle_shell", function() suspendInterrupts({
    handle_shell()
    tryCatch(allowInterrupts(Sys.sleep(0)), interrupt = function(e) NULL) # takes the one that has come
  }), as.environment(kernel))
  kernel$run()
}, new.env(parent = asNamespace("IRkernel")))
