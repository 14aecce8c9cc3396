package bloom

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
)

// Writer writes a bloom file. It is used by one goroutine, and keeps the first error.
type Writer struct {
	file   *cfile.RawWriter
	sizing Sizing
	header []byte // of every filter
	filter filter
	keys   int // in filter

	first []byte // key of filter
	last  []byte // key added
	full  []byte // last key of the last filter that was filled up; empty before

	total int64
	err   error
	done  bool
}

// NewWriter begins a bloom file on sink. Errors: options that cannot be, those of the sink.
func NewWriter(sink block.Sink, o Options) (*Writer, error) {
	sizing, err := o.Sizing()
	if err != nil {
		return nil, err
	}
	header, err := appendHeader(nil, sizing.Hashes)
	if err != nil {
		return nil, fmt.Errorf("bloom: %w", err)
	}
	file, err := cfile.NewRawWriter(sink, cfile.WriterOptions{NoChecksums: o.NoChecksums})
	if err != nil {
		return nil, fmt.Errorf("bloom: %w", err)
	}
	return &Writer{
		file: file, sizing: sizing, header: header,
		filter: filter{hashes: sizing.Hashes, bitmap: make([]byte, sizing.Bytes)},
	}, nil
}

// Add puts an encoded key into the file; it is copied where it is needed. Keys must not fall: a
// key in a filter where nobody looks for it would be a row that cannot be found.
// Source: cfile spec §9.4.
func (w *Writer) Add(key []byte) error {
	switch {
	case w.err != nil:
		return w.err
	case w.done:
		return errors.New("bloom: Add after Finish")
	case w.total > 0 && bytes.Compare(key, w.last) < 0:
		w.err = fmt.Errorf("bloom: key %x behind %x: keys must rise", key, w.last)
		return w.err
	}
	if w.keys == 0 {
		w.first = append(w.first[:0], key...)
	}
	w.last = append(w.last[:0], key...)
	w.filter.add(MakeProbe(key).hash)
	w.keys++
	w.total++
	if w.keys < w.sizing.Keys {
		return nil
	}
	err := w.closeFilter()
	// Kudu's writer notes the key only here, not at the last filter; nothing follows that one.
	w.full = append(w.full[:0], w.last...)
	return err
}

// closeFilter writes the filter and begins an empty one.
func (w *Writer) closeFilter() error {
	if err := w.file.AppendBlock([][]byte{w.header, w.filter.bitmap}, w.first, w.full); err != nil {
		w.err = fmt.Errorf("bloom: %w", err)
		return w.err
	}
	clear(w.filter.bitmap)
	w.keys = 0
	return nil
}

// Keys returns how many keys were added.
func (w *Writer) Keys() int64 { return w.total }

// Finish writes the last filter, if it has a key, the index and the footer. The sink is the
// caller's to close.
func (w *Writer) Finish() error {
	switch {
	case w.err != nil:
		return w.err
	case w.done:
		return errors.New("bloom: Finish after Finish")
	}
	w.done = true
	if w.keys > 0 {
		if err := w.closeFilter(); err != nil {
			return err
		}
	}
	if err := w.file.Finish(); err != nil {
		w.err = fmt.Errorf("bloom: %w", err)
	}
	return w.err
}
