package mcpserver

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"slices"

	"cellblock/internal/filetype"
	"cellblock/internal/words"
	"cellblock/mcpserver/picture"
)

// leastShare is what an image may take of a result however many there are, in bytes of base64: of a plot that were made smaller
// little could be read. The last of very many are left out instead.
const leastShare = 64_000

// share is how much the first of some images may take of a room, so that those behind it have theirs, too: what the small ones do
// not need goes to the large. Sizes are what they would take as they are, in bytes of base64.
func share(room int, sizes []int) int {
	left := room
	sorted := slices.Sorted(slices.Values(sizes))
	for i, size := range sorted {
		if each := left / (len(sorted) - i); size > each {
			return min(max(each, leastShare), room)
		}
		left -= size
	}
	return room
}

// imageForm is the form of a bundle that is shown as an image, nil if it has none.
func imageForm(data mimeBundle) json.RawMessage {
	if mime := firstOf(data, filetype.Images...); mime != "" {
		return data[mime]
	}
	return nil
}

// imageSizes returns what each image of the area would take as it is, in order, without those that an earlier item has, too, which it
// notes.
func (a *area) imageSizes() (sizes []int) {
	seed, seen := maphash.MakeSeed(), map[uint64]*item{}
	for _, it := range a.items {
		it.like = nil
		form := imageForm(it.out.Data)
		if form == nil {
			continue
		}
		sum := maphash.Bytes(seed, form)
		if first := seen[sum]; first != nil && bytes.Equal(imageForm(first.out.Data), form) {
			it.like = first
			continue
		}
		seen[sum] = it
		sizes = append(sizes, min(max(len(form), picture.MinBytes), picture.MaxBytes))
	}
	return sizes
}

// repeats tells whether an item is an image that has been shown already: a figure that is shown, and is then the cell's value, costs
// a model as much again, and says nothing.
func (it *item) repeats() bool { return it.like != nil && it.like.seen }

// imageRow is images in a row that are not shown. One line tells of all that there is no room for, and one of all that come again.
type imageRow struct {
	crowded []*item
	again   int
}

// end returns what tells of the row, and begins another.
func (r *imageRow) end(at place) []piece {
	pieces := append(crowdedPieces(r.crowded, at), repeatedPieces(r.again)...)
	*r = imageRow{}
	return pieces
}

// crowdedPieces tell of images for which there was no room, with where the first and the last of them are.
func crowdedPieces(items []*item, at place) []piece {
	if len(items) == 0 {
		return nil
	}
	first, last := items[0], items[len(items)-1]
	if first == last {
		return textPieces(crowdedNote(firstOf(first.out.Data, filetype.Images...), at.kept(first.index)), false)
	}
	return textPieces(crowdedNote(words.Count(int64(len(items)), "image"), at.keptFrom(first.index, last.index)), false)
}

// crowdedNote says that something is left out for want of room; kept says where it is.
func crowdedNote(what, kept string) string {
	return "[" + what + " left out: " + picture.ErrNoRoom.Error() + "; show fewer or smaller ones in one cell" + kept + "]"
}

// repeatedPieces tell of so many images in a row that come again.
func repeatedPieces(n int) []piece {
	switch n {
	case 0:
		return nil
	case 1:
		return textPieces("[the same image again]", false)
	}
	return textPieces("["+words.Count(int64(n), "image")+" of before again]", false)
}
