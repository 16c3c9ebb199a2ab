package mcpserver

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"cellblock/mcpserver/terminal"
)

// maxTurns is how many turns of stdout and stderr have a block each. More of them are the lines of one, where a stream's mark
// stands wherever it begins: a block for a line costs a model more than the mark.
const maxTurns = 40

// turn is what one stream wrote before the other did.
type turn struct {
	text   string
	stderr bool
	// again tells that an earlier turn has said the same, times how many later ones do.
	again bool
	times int
}

// turns returns the turns of the two ends as a terminal shows them.
func (t *longText) turns() (head, tail []turn) {
	front, back := t.ends()
	return turnsOf(front), turnsOf(back)
}

func turnsOf(chunks []chunk) []turn {
	turns := joinTurns(dropRedrawn(splitTurns(chunks)))
	for i := range turns {
		turns[i].text = terminal.Plain(turns[i].text)
	}
	return turns
}

func splitTurns(chunks []chunk) (turns []turn) {
	for len(chunks) > 0 {
		n := 1
		for n < len(chunks) && chunks[n].stderr == chunks[0].stderr {
			n++
		}
		turns = append(turns, turn{text: joinChunks(chunks[:n]), stderr: chunks[0].stderr})
		chunks = chunks[n:]
	}
	return turns
}

// dropRedrawn takes away each unfinished line that its own stream's next turn draws anew: of a progress bar between whose
// states something else was printed, the last state counts, as of any other.
func dropRedrawn(turns []turn) []turn {
	for i := 2; i < len(turns); i++ {
		text, before := turns[i].text, &turns[i-2]
		if strings.HasPrefix(text, "\r") && !strings.HasPrefix(text, "\r\n") {
			before.text = before.text[:strings.LastIndexByte(before.text, '\n')+1]
		}
	}
	return turns
}

// joinTurns joins the turns of one stream between which nothing is left of the other.
func joinTurns(turns []turn) (joined []turn) {
	for i := 0; i < len(turns); {
		var b strings.Builder
		stderr := turns[i].stderr
		for ; i < len(turns) && (turns[i].stderr == stderr || turns[i].text == ""); i++ {
			b.WriteString(turns[i].text)
		}
		joined = append(joined, turn{text: b.String(), stderr: stderr})
	}
	return joined
}

// pieces renders text of the streams.
func (t *longText) pieces() []piece {
	head, tail := t.turns()
	markAgains(head)
	markAgains(tail)
	many := told(head)+told(tail) > maxTurns
	pieces := turnPieces(head, many)
	if t.missing.none() {
		return pieces
	}
	pieces = append(pieces, piece{missing: t.missing, readable: true})
	return append(pieces, turnPieces(tail, many)...)
}

// told is how many turns are left when what stderr says again is not told, and stdout goes on over it.
func told(turns []turn) int {
	n := len(turns)
	for _, t := range turns {
		if t.again {
			n -= 2
		}
	}
	return n
}

func turnPieces(turns []turn, many bool) (pieces []piece) {
	for _, t := range turns {
		for _, p := range t.pieces() {
			p.oneOfMany = many
			pieces = append(pieces, p)
		}
	}
	return pieces
}

func (t turn) pieces() []piece {
	switch {
	case t.again:
		return againPieces(t)
	case t.times > 0:
		return append(foldRepeats(t.text, t.stderr), betweenNote(t))
	}
	return foldRepeats(t.text, t.stderr)
}

func streamPieces(text string, stderr bool) []piece {
	pieces := textPieces(text, stderr)
	if utf8.RuneCountInString(text) > maxBinary && isBinary(text) {
		pieces = middlePieces(text, maxBinary)
	}
	for i := range pieces {
		pieces[i].stderr, pieces[i].stdout = stderr, !stderr
	}
	return pieces
}

// maxBinary is how many characters are told of what nobody can read.
const maxBinary = 1000

// escapedByte is how Python, and what Bash prints, tell a byte that is no text. A path of Windows or a formula has other letters.
var escapedByte = regexp.MustCompile(`\\x[0-9a-f]{2}`)

// isBinary tells whether a text is made of bytes that are none, as of a program or a picture: of ten characters at least one stands for a
// byte that UTF-8 does not know, or begins the escape of one. Of a text in an older encoding it may be one in twelve.
func isBinary(text string) bool {
	marks := strings.Count(text, "\uFFFD") + len(escapedByte.FindAllStringIndex(text, -1))
	return marks*10 > utf8.RuneCountInString(text)
}
