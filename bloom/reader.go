package bloom

import (
	"fmt"
	"sync/atomic"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// Reader is an open bloom file. It may be used by many goroutines at once. It owns no resources but
// memory, so there is nothing to close.
type Reader struct {
	file   *cfile.Reader
	src    block.Source
	cached bool

	// last is the filter used last, for files without a cache: lookups in key order then read each
	// filter once. nil before the first lookup.
	last atomic.Pointer[held]
}

// held is a filter and its position.
type held struct {
	at     cfile.BlockPointer
	filter *filter
}

// Open reads and checks the header and the footer of a bloom file; the index is read on the first
// lookup. src must stay open while the Reader is used; the caller closes it.
//
// Errors: ErrCorrupt; ErrUnsupported for a CFile that is compressed, has no value index, or has
// another type than BINARY. Source: cfile spec §9, §12.3 item 53.
func Open(src block.Source, o cfile.ReaderOptions) (*Reader, error) {
	file, err := cfile.Open(src, o)
	if err != nil {
		return nil, fmt.Errorf("bloom: %w", err)
	}
	info := file.Info()
	switch {
	case info.Compression != schema.NoCompression:
		return nil, fault.Unsupportedf("bloom: block %v: not a bloom file: compressed (%v)", src.ID(), info.Compression)
	case !info.ValueIndex:
		return nil, fault.Unsupportedf("bloom: block %v: not a bloom file: no value index", src.ID())
	case info.Type != schema.Binary || info.Encoding != schema.Plain || info.Nullable || info.Rows != 0:
		return nil, fault.Unsupportedf("bloom: block %v: not a bloom file: %d values of type %v, encoding %v",
			src.ID(), info.Rows, info.Type, info.Encoding)
	}
	return &Reader{file: file, src: src, cached: o.Cache != nil && src.ID() != 0}, nil
}

// MayContain reports whether the key of p may be in the file. False is definite.
//
// It reads one filter: the index shows which one may contain the key. Errors: ErrCorrupt, with
// block and byte offset; the errors of the source. Source: cfile spec §9.5.
func (r *Reader) MayContain(p Probe) (bool, error) {
	at, ok, err := r.file.FindBlock(p.Key)
	if err != nil {
		return false, fmt.Errorf("bloom: %w", err)
	}
	if !ok {
		return false, nil // before the first key
	}
	f, err := r.filterAt(at)
	if err != nil {
		return false, err
	}
	return f.mayContain(p.hash), nil
}

// Excludes reports whether the filter for p's key is in the cache and says that the key is absent.
// It reads no filter, but may read the index. It returns the same errors as MayContain.
func (r *Reader) Excludes(p Probe) (bool, error) {
	at, ok, err := r.file.FindBlock(p.Key)
	if err != nil {
		return false, fmt.Errorf("bloom: %w", err)
	}
	if !ok {
		return true, nil // before the first key
	}
	v, ok := r.file.CachedBlock(at)
	return ok && !v.(*filter).mayContain(p.hash), nil
}

// filterAt returns the filter at an index pointer.
func (r *Reader) filterAt(at cfile.BlockPointer) (*filter, error) {
	if r.cached {
		return readFilter(r.file, at)
	}
	if h := r.last.Load(); h != nil && h.at == at {
		return h.filter, nil
	}
	f, err := readFilter(r.file, at)
	if err == nil {
		r.last.Store(&held{at, f})
	}
	return f, err
}

// readFilter reads the filter at an index pointer.
func readFilter(file *cfile.Reader, at cfile.BlockPointer) (*filter, error) {
	v, err := file.ReadBlock(at, parseAny)
	if err != nil {
		return nil, fmt.Errorf("bloom: %w", err)
	}
	return v.(*filter), nil
}

// parseAny adapts parseFilter to the type that cfile requires.
func parseAny(payload []byte) (any, error) { return parseFilter(payload) }

// Verify reads and checks the whole file without the cache: header, footer, index and every filter.
// Errors: ErrCorrupt, ErrUnsupported; the errors of the source.
func (r *Reader) Verify() error {
	fresh, err := Open(r.src, cfile.ReaderOptions{})
	if err != nil {
		return err
	}
	pointers, err := fresh.file.BlockPointers()
	if err != nil {
		return fmt.Errorf("bloom: %w", err)
	}
	for _, at := range pointers {
		if _, err := readFilter(fresh.file, at); err != nil {
			return err
		}
	}
	return nil
}
