package bloom

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/keyenc"
)

// Writer writes a bloom file. It is for use by one goroutine. The first error is kept and returned
// by all later calls.
type Writer struct {
	file   *cfile.RawWriter
	sizing Sizing
	header []byte // of every filter
	filter filter
	keys   int // in filter

	first []byte // key of filter
	last  []byte // key added
	full  []byte // last key of the last full filter; empty before

	total int64
	err   error
	done  bool
}

// NewWriter starts a bloom file on sink. It returns an error for invalid options, and errors of the
// sink.
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

// Add adds an encoded key and copies what it retains. Keys must not descend: a lookup would miss a
// key in the wrong filter. Source: cfile spec §9.4.
func (w *Writer) Add(key []byte) error { return w.AddAll([][]byte{key}) }

// AddAll is Add for each of the keys.
func (w *Writer) AddAll(keys [][]byte) error {
	if w.err == nil && w.done {
		return errors.New("bloom: Add after Finish")
	}
	for len(keys) > 0 && w.err == nil {
		n := min(w.sizing.Keys-w.keys, len(keys))
		w.err = w.addSome(keys[:n])
		keys = keys[n:]
	}
	return w.err
}

// addSome adds keys for which the filter has room, at least one.
func (w *Writer) addSome(keys [][]byte) error {
	if err := w.checkOrder(keys); err != nil {
		return err
	}
	if w.keys == 0 {
		w.first = append(w.first[:0], keys[0]...)
	}
	w.last = append(w.last[:0], keys[len(keys)-1]...)
	for _, key := range keys {
		w.filter.add(MakeProbe(key).hash)
	}
	w.keys += len(keys)
	w.total += int64(len(keys))
	if w.keys < w.sizing.Keys {
		return nil
	}
	err := w.closeFilter()
	// Like Kudu's writer, set full only here and not at the last filter, which has no filter after
	// it.
	w.full = append(w.full[:0], w.last...)
	return err
}

// checkOrder returns an error if keys descend.
func (w *Writer) checkOrder(keys [][]byte) error {
	last := w.last
	head := keyenc.Head(last)
	for i, key := range keys {
		next := keyenc.Head(key)
		if next <= head && (i > 0 || w.total > 0) && bytes.Compare(key, last) < 0 {
			return fmt.Errorf("bloom: key %x after %x, want ascending keys", key, last)
		}
		last, head = key, next
	}
	return nil
}

// closeFilter writes the filter and starts an empty one.
func (w *Writer) closeFilter() error {
	if err := w.file.AppendBlock([][]byte{w.header, w.filter.bitmap}, w.first, w.full); err != nil {
		return fmt.Errorf("bloom: %w", err)
	}
	clear(w.filter.bitmap)
	w.keys = 0
	return nil
}

// Keys returns the number of keys added.
func (w *Writer) Keys() int64 { return w.total }

// Finish writes the last filter, if it has a key, the index and the footer. The caller closes the
// sink.
func (w *Writer) Finish() error {
	switch {
	case w.err != nil:
		return w.err
	case w.done:
		return errors.New("bloom: Finish after Finish")
	}
	w.done = true
	if w.keys > 0 {
		if w.err = w.closeFilter(); w.err != nil {
			return w.err
		}
	}
	if err := w.file.Finish(); err != nil {
		w.err = fmt.Errorf("bloom: %w", err)
	}
	return w.err
}
