package bloom

import (
	"math/bits"

	"github.com/oribi-db/oribi/cfile"
)

// Info is what a bloom file holds. The number of keys stands nowhere in it.
type Info struct {
	File    cfile.Info
	Filters int
	Hashes  int   // of the first filter; all filters that one writer makes have the same
	Bitmap  int   // bytes of the first filter's bitmap, likewise
	Bits    int64 // of all filters
	Set     int64 // of these, 1
	// Wrong is the share of absent keys that are answered with "may be here": the mean over all
	// filters.
	Wrong float64
}

// Info reads all filters and counts.
// Errors: ErrCorrupt, ErrUnsupported; those of the source.
func (r *Reader) Info() (Info, error) {
	info := Info{File: r.file.Info()}
	pointers, err := r.file.BlockPointers()
	if err != nil {
		return info, err
	}
	for i, at := range pointers {
		f, err := readFilter(r.file, at)
		if err != nil {
			return info, err
		}
		if i == 0 {
			info.Hashes, info.Bitmap = f.hashes, len(f.bitmap)
		}
		set := 0
		for _, b := range f.bitmap {
			set += bits.OnesCount8(b)
		}
		full := float64(set) / float64(8*len(f.bitmap))
		wrong := 1.0
		for range f.hashes {
			wrong *= full
		}
		info.Filters++
		info.Bits += int64(8 * len(f.bitmap))
		info.Set += int64(set)
		info.Wrong += (wrong - info.Wrong) / float64(info.Filters)
	}
	return info, nil
}
