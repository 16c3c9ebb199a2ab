package derived

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
)

// MaxBytes is for all owners together, and each has a share of it, as large as every other's: who takes no more than that loses no
// image because somebody else wants many. What is not taken up by some may be by others, as long as there is room.

// makeRoom removes images until they take no more than MaxBytes: first those that nobody has a name for, then of the owner who takes
// the most, as long as that is more than his share. The longest unused go first, and what sessions run in stays. An image that
// others have a name for, too, is only taken from him.
func (l *Library) makeRoom(ctx context.Context, list []derivedImage) error {
	for l.cfg.MaxBytes > 0 && sizeOf(list) > l.cfg.MaxBytes {
		n, names := spare(list, l.cfg.MaxBytes)
		if n < 0 {
			return nil
		}
		i := &list[n]
		switch done, err := l.take(ctx, *i, names); {
		case err != nil:
			return err
		case !done:
			i.used = true
		case len(names) == len(i.names):
			list = slices.Delete(list, n, n+1)
		default:
			i.names = slices.DeleteFunc(i.names, func(name string) bool { return slices.Contains(names, name) })
		}
	}
	return nil
}

func sizeOf(list []derivedImage) (total int64) {
	for _, i := range list {
		total += i.Size
	}
	return total
}

// spare chooses what goes next, and which of its names; -1 when nothing may. The list has the longest unused first.
func spare(list []derivedImage, most int64) (n int, names []string) {
	if n := slices.IndexFunc(list, func(i derivedImage) bool { return !i.used && len(i.names) == 0 }); n >= 0 {
		return n, nil
	}
	taken := map[string]int64{} // by shelf
	for _, i := range list {
		for shelf := range i.byShelf() {
			taken[shelf] += i.Size
		}
	}
	shelves := slices.SortedFunc(maps.Keys(taken), func(a, b string) int {
		return cmp.Or(cmp.Compare(taken[b], taken[a]), strings.Compare(a, b))
	})
	for _, shelf := range shelves {
		if taken[shelf] <= most/int64(len(shelves)) {
			break
		}
		for n, i := range list {
			if names := i.byShelf()[shelf]; len(names) > 0 && !i.used {
				return n, names
			}
		}
	}
	return -1, nil
}

// byShelf are an image's names, by whose they are.
func (i derivedImage) byShelf() map[string][]string {
	names := map[string][]string{}
	for _, name := range i.names {
		shelf, _, _ := strings.Cut(name, ":")
		names[shelf] = append(names[shelf], name)
	}
	return names
}
