package mcpserver

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/filetype"
	"cellblock/kernels"
	"cellblock/mcpserver/picture"
)

// budget is how much one result may hold. A model reads all of it, and pays for it.
type budget struct {
	// chars is for all texts together: about four to a token.
	chars int
	// images is for all images together, in bytes of base64.
	images int
	// coming is what each of the images that are still to be shown would take, in bytes of base64: they share what there is. Empty
	// where there is one image only.
	coming []int
	// pixels is how many may be decoded for all images together.
	pixels int
	// side is the longest side of an image, in pixels.
	side int
}

// DefaultImageSide is the longest side, in pixels, of images in a result where Config says nothing else.
const DefaultImageSide = picture.DefaultSide

// defaultBudget is 10,000 tokens of text and, with the images, 1 MB.
var defaultBudget = budget{chars: 40_000, images: 1<<20 - 4*40_000, pixels: 200_000_000, side: DefaultImageSide}

// room is what the budget has for an image that may take so many bytes of base64.
func (b budget) room(most int) picture.Room {
	return picture.Room{Bytes: most, Pixels: b.pixels, Side: b.side}
}

// minus is what is left of a budget after blocks.
func (b budget) minus(blocks []mcp.Content) budget {
	for _, block := range blocks {
		switch c := block.(type) {
		case mcp.TextContent:
			b.chars -= utf8.RuneCountInString(c.Text) + perBlock
		case mcp.ImageContent:
			b.images -= max(len(c.Data), picture.MinBytes)
		}
	}
	return b
}

// perBlock is what a text costs beside its characters; it bounds the number of blocks.
const perBlock = 40

// perTurn is what one of many turns costs beside its characters: its mark and its line end.
const perTurn = 10

// maxBlocks is how many blocks a result may have whose texts are kept apart; of more, neighbours are joined.
const maxBlocks = 64

// piece is a part of a result on its way to a block: a text, an image, or a place where something is missing.
type piece struct {
	text   string
	stderr bool
	// stdout tells that the text is of that stream. What is of neither is a value, a display or an error.
	stdout bool
	// oneOfMany tells that the text is one of many that are one block.
	oneOfMany bool
	// folded tells that the text, if there is any, is a note, and again is what has been told before and is left out here.
	folded bool
	again  left
	// of is the turn whose repetition the text tells of, or which is repeated here.
	of string

	image   *mcp.ImageContent
	missing left
	// readable tells that what is missing was left out here, and can be read elsewhere.
	readable bool
}

// size is what a piece takes of the budget for texts.
func (p piece) size() int {
	switch {
	case p.text == "":
		return 0
	case p.oneOfMany:
		return utf8.RuneCountInString(p.text) + perTurn
	}
	return utf8.RuneCountInString(p.text) + perBlock
}

// blocks makes content blocks of what the area shows, in its order, within the budget. What bounds the kernel is for
// hints.
func (a *area) blocks(b budget, within bounds) []mcp.Content {
	var pieces []piece
	var row imageRow
	b.coming = a.imageSizes()
	for _, it := range a.items {
		if it.repeats() {
			row.again++
			continue
		}
		shown := it.pieces(&b, within, a.place)
		if it.crowded {
			row.crowded = append(row.crowded, it)
			continue
		}
		pieces = append(append(pieces, row.end(a.place)...), shown...)
	}
	pieces = append(pieces, row.end(a.place)...)
	return toBlocks(cutPieces(pieces, b.chars), a.place)
}

// pieces renders one item. It takes the room of its images from the budget.
func (it *item) pieces(b *budget, within bounds, at place) []piece {
	switch it.kind {
	case kernels.OutputStream:
		return it.text.pieces()
	case kernels.OutputError:
		text := errorText(*it.out.Error, at.shift)
		if hint := errorHint(*it.out.Error, within); hint != "" {
			text = joinLines(text, "Hint: "+hint)
		}
		return textPieces(text, false)
	case kernels.OutputNotice:
		return noticePieces(it.out.Notice)
	default:
		return it.bundlePieces(b, at)
	}
}

func textPieces(text string, stderr bool) []piece {
	text = strings.TrimRight(text, "\n\t ")
	if text == "" {
		return nil
	}
	return []piece{{text: text, stderr: stderr}}
}

// noticePieces tells of output that never arrived. What was left out because it was too much is counted together with
// what is left out here.
func noticePieces(n *kernels.Notice) []piece {
	if n == nil {
		return nil
	}
	if e := n.Elided; e != nil && e.Stream != "" {
		return []piece{{missing: left{chars: e.Bytes, lines: e.Lines, lost: e.Bytes}}}
	} else if e != nil {
		return []piece{{missing: left{outputs: e.Messages}}}
	}
	return []piece{{text: n.String()}}
}

// bundlePieces renders a result or a display: an image if there is one that can be shown, else text.
func (it *item) bundlePieces(b *budget, at place) []piece {
	most := b.images
	if it.like == nil && len(b.coming) > 0 && imageForm(it.out.Data) != nil {
		most, b.coming = share(b.images, b.coming), b.coming[1:]
	}
	image, note, err := bundleImage(it.out.Data, b, most, at.kept(it.index))
	it.seen = image != nil
	if image != nil && at.links && it.index >= 0 && !isForm(it.out.Data, image.Data) {
		image.Meta = &mcp.Meta{AdditionalFields: map[string]any{OriginalMeta: at.one(it.index)}}
	}
	if it.tooMuch {
		note = joinLines(note, "[large forms left out: the cell shows very much; show fewer or smaller ones in one cell"+at.kept(it.index)+"]")
	}
	if image != nil {
		return append([]piece{{image: image}}, textPieces(note, false)...)
	}
	text := bundleText(it.out.Data, at.kept(it.index))
	if it.kind == kernels.OutputResult && isValue(it.out.Data) && utf8.RuneCountInString(text) > maxValue {
		return append(middlePieces(text, maxValue), textPieces(note, false)...)
	}
	if IsPlaceholder(text) && (note != "" || strings.HasSuffix(text, " with 0 Axes>")) {
		text = "" // the note says more, or there is nothing to see
	}
	it.crowded = errors.Is(err, picture.ErrNoRoom) && text == "" && !it.tooMuch
	return textPieces(joinLines(text, note), false)
}

// maxValue is how many characters are told of a value that the code has not printed. That it was asked for at all is not
// known: it only stands last.
const maxValue = 8000

// isValue tells whether a bundle's text is a value as its language writes it.
func isValue(data mimeBundle) bool {
	return firstOf(data, "text/markdown", "text/latex", "application/json") == "" && !IsPlaceholder(mimeText(data["text/plain"]))
}

// middlePieces renders head and tail of a text with so many characters, and what can be read between.
func middlePieces(text string, n int) []piece {
	head := firstChars(text, n/2)
	tail := lastChars(text[len(head):], n-n/2)
	missing := leftOf(text[len(head) : len(text)-len(tail)])
	return append(append(textPieces(head, false), piece{missing: missing, readable: true}), textPieces(tail, false)...)
}

// isForm tells whether data is what a bundle holds, and not made from it.
func isForm(bundle mimeBundle, data string) bool {
	return mimeText(imageForm(bundle)) == data
}

// OriginalMeta is the key in the _meta of an image that was scaled down or converted under which programs find the address
// of the original.
const OriginalMeta = "cellblock/original"

// bundleImage returns a bundle's image and, where it is not shown as it is, why; kept says where the original is. It takes its room from
// the budget, at most so much.
func bundleImage(data mimeBundle, b *budget, most int, kept string) (image *mcp.ImageContent, note string, err error) {
	mime := firstOf(data, filetype.Images...)
	if mime == "" {
		return nil, "", nil
	}
	fit, err := picture.Fit(mime, mimeText(data[mime]), b.room(most))
	b.pixels -= fit.Width * fit.Height
	switch {
	case errors.Is(err, picture.ErrNoRoom):
		return nil, crowdedNote(mime, kept), err
	case err != nil:
		return nil, "[" + mime + " left out: " + clean(err.Error()) + kept + "]", err
	}
	b.images -= max(len(fit.Data), picture.MinBytes)
	if fit.Smaller {
		note = fmt.Sprintf("[scaled down from %d×%d pixels%s]", fit.Width, fit.Height, kept)
		if fit.Unreadable() {
			note = fmt.Sprintf("[scaled down from %d×%d to %d×%d pixels, too small to read: show less in one image%s]", fit.Width, fit.Height, fit.Shown.X, fit.Shown.Y, kept)
		}
	}
	if fit.Pictures > 1 {
		note = joinLines(note, fmt.Sprintf("[the first of %d pictures of an animation%s]", fit.Pictures, kept))
	}
	block := mcp.NewImageContent(fit.Data, fit.MIME)
	return &block, note, nil
}
