package mcpserver

import (
	"slices"
	"strings"

	"cellblock/internal/words"
)

const (
	// maxFoldLines is how many lines a text may have that is told once when it comes again and again.
	maxFoldLines = 40
	// minFolded is how many bytes must be saved: what is short is told as it is.
	minFolded = 200
	// minAgain is how many bytes a turn must have that is told once when it comes between others.
	minAgain = 80
	// minPrinted is how often a line of stdout comes again that is told once: a few may be a column of something, hundreds are a flood.
	minPrinted = 20
)

// foldRepeats renders a stream's text, in which the same lines may come again and again: once, with how often they come. On stderr a
// warning does, in several lines; what was printed is told as it is, but for a line that floods all others.
func foldRepeats(text string, stderr bool) (pieces []piece) {
	fold := floods
	if stderr {
		fold = repeats
	}
	lines := strings.SplitAfter(text, "\n")
	var told strings.Builder
	for i := 0; i < len(lines); {
		n, times := fold(lines[i:])
		told.WriteString(strings.Join(lines[i:i+n], ""))
		if times > 0 {
			again := leftOf(strings.Join(lines[i+n:i+n+n*times], ""))
			pieces = append(pieces, streamPieces(told.String(), stderr)...)
			pieces = append(pieces, piece{text: foldNote(n, times) + " …", stderr: stderr, stdout: !stderr, folded: true, again: again})
			told.Reset()
		}
		i += n + n*times
	}
	return append(pieces, streamPieces(told.String(), stderr)...)
}

// repeats tells how many of the first lines come again at once, and how many times more; 1 and 0 where that saves too little.
func repeats(lines []string) (n, times int) {
	for n := 1; n <= maxFoldLines && 2*n <= len(lines); n++ {
		size := 0
		for _, line := range lines[:n] {
			size += len(line)
		}
		if times := follow(lines, n); times*size >= minFolded {
			return n, times
		}
	}
	return 1, 0
}

// floods is repeats for what was printed: of a single line. Those that are empty are told as they are, and each is looked at once.
func floods(lines []string) (n, times int) {
	times = follow(lines, 1)
	switch {
	case times < minPrinted || times*len(lines[0]) < minFolded:
		return 1, 0
	case strings.TrimSpace(lines[0]) == "":
		return times + 1, 0
	}
	return 1, times
}

// follow tells how many times the first n lines come again at once.
func follow(lines []string, n int) (times int) {
	for next := n; next+n <= len(lines) && slices.Equal(lines[:n], lines[next:next+n]); next += n {
		times++
	}
	return times
}

func foldNote(lines, times int) string {
	what, often := "line", "once more"
	if lines > 1 {
		what = words.Count(int64(lines), "line")
	}
	if times > 1 {
		often = words.Count(int64(times), "time") + " more"
	}
	return "… the same " + what + " " + often
}

// markAgains marks stderr's turns that say again what an earlier one has said, as a warning does that comes between prints. What is
// short is told each time: it may be about the line before it.
func markAgains(turns []turn) {
	times := map[string]int{}
	for _, t := range turns {
		if t.stderr && len(t.text) >= minAgain {
			times[t.text]++
		}
	}
	first := map[string]bool{}
	for i, t := range turns {
		more := times[t.text] - 1
		if !t.stderr || more*len(t.text) < minFolded {
			continue
		}
		if turns[i].again = first[t.text]; !first[t.text] {
			turns[i].times, first[t.text] = more, true
		}
	}
}

// againPieces stand for a turn that is told with an earlier one.
func againPieces(t turn) []piece {
	said := leftOf(strings.TrimRight(t.text, "\n"))
	return []piece{{stderr: true, folded: true, of: t.text, again: said.plus(left{chars: int64(len("\n[stderr] ")), lines: 1})}}
}

// betweenNote says that a turn comes again behind others.
func betweenNote(t turn) piece {
	lines := strings.Count(strings.TrimRight(t.text, "\n"), "\n") + 1
	return piece{text: foldNote(lines, t.times) + ", between what follows …", stderr: true, folded: true, of: t.text}
}
