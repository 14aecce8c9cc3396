package bloom

import (
	"math/bits"

	"github.com/oribi-db/oribi/cfile"
)

// Info describes a bloom file. The file does not record the number of keys.
type Info struct {
	File    cfile.Info
	Filters int
	Hashes  int   // of the first filter; all filters of one writer have the same
	Bitmap  int   // bytes of the first filter's bitmap; the same for all filters of one writer
	Bits    int64 // of all filters
	Set     int64 // bits that are 1, of all filters
	// Wrong is the expected false-positive rate for absent keys, from the share of bits that are
	// set: the mean over all filters.
	Wrong float64
}

// Info reads all filters and counts their bits. Errors: ErrCorrupt, ErrUnsupported; the errors of
// the source.
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
