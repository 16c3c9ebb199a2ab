package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/mcpserver"
)

// The server's hints are written for models, which call tools. Whoever types commands is told the commands.

// readCall is the call that reads what a cell showed, with the session's name and the cell's number, and pageCall the one that reads
// on where that leaves something out.
var (
	readCall = regexp.MustCompile(`get_execution\(session_id="([^"]*)", execution_id=(\d+)[^)]*\)`)
	pageCall = regexp.MustCompile(`get_execution\(session_id="([^"]*)", execution_id=\d+, offset=\d+\)`)
)

// lateCells is the block that counts earlier cells whose late output a result does not tell.
var lateCells = regexp.MustCompile(`^\[[\d,]+ more cells? went on in the background; get_execution reads what they produced\]$`)

// executeCall is the call that runs code of a language.
var executeCall = regexp.MustCompile(`call execute_([a-z]+) on this one`)

// commandWords are the words of hints, and what is said for them here. Longer ones stand before those that they begin with.
var commandWords = strings.NewReplacer(
	"pass recursive=true to", "give --recursive (-r) to",
	"create_image makes", "cellblock images create makes",
	"close_session with delete_files", "cellblock sessions rm --delete-files",
	"close_session", "cellblock sessions rm",
	"executing code with a session_id", "cellblock exec --session",
	"use another session_id", "use another --session",
	"or the server at ", "or give --url ",
	"list_all_sessions", "cellblock admin ls",
	"list_sessions", "cellblock sessions ls",
	"list_executions", "cellblock sessions show",
	"list_files", "cellblock files ls",
	"read_file", "cellblock files get",
	"write_file", "cellblock files put",
	"delete_file", "cellblock files rm",
)

// toolOnly are tools that no command stands for.
var toolOnly = regexp.MustCompile(`\b(interrupt_session|restart_session|restore_session|get_execution)\b`)

// restoring and restoringLater are what a note on a new kernel advises models to do, and no command does.
const (
	restoring      = ", or let restore_session run the earlier cells again"
	restoringLater = " (restore_session runs that again)"
)

// ownHint is a hint of the server in the words of commands, without what only tools can do.
func ownHint(hint string) string {
	hint = executeCall.ReplaceAllString(hint, "give --language $1")
	return fault.HintWithout(commandWords.Replace(ownCalls(hint)), toolOnly)
}

// ownLine is a line of a block; if it is the hint to write a file first, with the command that does.
func ownLine(line string) string {
	if said, ok := strings.CutSuffix(line, mcpserver.WrittenFirst); ok && strings.HasPrefix(line, "Hint: ") {
		return said + strings.TrimSuffix(mcpserver.WrittenFirst, ".") + ": cellblock files put SESSION FILE."
	}
	return line
}

// ownCalls names in a line of the server the command that reads what a cell showed, and the option that a parameter is.
func ownCalls(line string) string {
	if bounds := timeoutBounds.FindStringSubmatch(line); bounds != nil {
		line = strings.Replace(line, bounds[0], fmt.Sprintf("--timeout: must be between %s and %s, got %s", inSeconds(bounds[1]), inSeconds(bounds[2]), inSeconds(bounds[3])), 1)
	}
	line = pageCall.ReplaceAllString(line, "`cellblock notebook export $1`")
	return readCall.ReplaceAllString(line, "`cellblock sessions show $1 $2`")
}

// timeoutBounds is what the server says of a timeout in seconds that it does not grant.
var timeoutBounds = regexp.MustCompile(`timeout_seconds: must be between (\d+) and (\d+), got (-?\d+)`)

// inSeconds is a number of seconds as people say it.
func inSeconds(number string) string {
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil {
		return number + " seconds"
	}
	return words.Length(time.Duration(n) * time.Second)
}

// mintedSession is how a result names a session that it began without a given name.
var mintedSession = regexp.MustCompile(`(?m)^\[session (\S+) \(new: pass this session_id to go on with it\)`)

// ownClosing is the block that closes a result. What it names beside the hint, such as files, keeps its name.
func ownClosing(text string) string {
	text = mintedSession.ReplaceAllString(text, "[session $1 (new: --session $1 goes on with it)")
	said, hint, hinted := strings.Cut(text, "\nHint: ")
	if hint = ownHint(hint); hinted && hint != "" {
		return ownCalls(said) + "\nHint: " + hint
	}
	return ownCalls(said)
}

// ownNote is a block of a result; if it is a note of the server, in the words of commands and without what only tools can do.
func ownNote(text string) string {
	if !strings.HasPrefix(text, "Note: ") && !lateCells.MatchString(text) {
		return text
	}
	text = strings.Replace(strings.Replace(text, restoring, "", 1), restoringLater, "", 1)
	return strings.Replace(text, "get_execution reads", "cellblock sessions show reads", 1)
}
