// Package damaged reads the files of rowsets as far as they can be read. A column file is read
// cblock by cblock if it cannot be read as a whole, and by its cblocks alone if its footer or its
// indexes are damaged. Of delta files, it returns the changes that can be read and the holes where
// others may have been.
//
// A RowSet, and what it returns, is not safe for concurrent use.
package damaged

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// Unreadable reports whether err is about the bytes of a file, or about the disk that has them.
// Another try would have the same result.
func Unreadable(err error) bool {
	for _, e := range []error{fault.ErrCorrupt, fault.ErrUnsupported, fault.ErrNotFound, syscall.EIO,
		io.ErrUnexpectedEOF} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// RowSet is a rowset of which files may be damaged.
type RowSet struct {
	Schema   *schema.Schema
	Metadata *rowset.Metadata
	Encoder  *keyenc.Encoder

	set  *rowset.DiskRowSet // without its delta files
	opts rowset.Options
	open []rowset.Block // that are open until Close
}

// Open returns a rowset that its metadata describes. It opens no file: each is opened when it is
// read. Errors: ErrCorrupt if the metadata lacks a file that the schema needs.
func Open(s *schema.Schema, m *rowset.Metadata, o rowset.Options) (*RowSet, error) {
	base := *m
	base.Undo, base.Redo = nil, nil
	set, err := rowset.Open(s, &base, o)
	if err != nil {
		return nil, err
	}
	return &RowSet{Schema: s, Metadata: m, Encoder: keyenc.NewEncoder(s), set: set, opts: o}, nil
}

// Close closes all files. It may be called twice.
func (d *RowSet) Close() {
	if d.set == nil {
		return
	}
	d.set.Unref()
	d.set = nil
	for _, b := range d.open {
		b.Close() // nothing was written, so an error does not matter
	}
	d.open = nil
}

// StoredCells returns the base cells of a row from the row file, by index in the schema, and which
// of them it has; nil if they cannot be read there. Errors: errors of reading that are not damage.
func (d *RowSet) StoredCells(row batch.Ordinal) (cells [][]byte, has []bool, err error) {
	cells, has, err = d.set.StoredCells(row)
	if err != nil && Unreadable(err) {
		return nil, nil, nil
	}
	return cells, has, err
}

// readerOptions returns the options of files.
func (d *RowSet) readerOptions() cfile.ReaderOptions {
	return cfile.ReaderOptions{Cache: d.opts.Cache, NoHeader: true, Limit: d.opts.Reads}
}

// openBlock opens a block and calls open for its content. Unless open fails, the block stays open
// until Close.
func openBlock[R any](d *RowSet, id block.ID, open func(block.Source) (R, error)) (r R, err error) {
	src, err := d.opts.Blocks.OpenBlock(id)
	if err == nil {
		if r, err = open(src); err != nil {
			src.Close()
		}
	}
	if err != nil {
		return r, fmt.Errorf("rowset %d: %w", d.Metadata.ID, err)
	}
	d.open = append(d.open, src)
	return r, nil
}

// readable returns f, a file with as many cells as the rowset has rows that was opened with err, if
// all of it but some of its cells can be read; otherwise a file of the cblocks that can be read.
func (d *RowSet) readable(id block.ID, f *cfile.Reader, err error, column *schema.Column) (*cfile.Reader, error) {
	if err == nil {
		err = f.CheckParts()
	}
	if err == nil && !f.Info().Checksums {
		err = fault.Corruptf("block %d: has no checksums", id)
	}
	if err == nil || !Unreadable(err) {
		return f, err
	}
	known := cfile.Known{Type: column.Stored(), Nullable: column.Nullable,
		Array: column.Type == schema.Array, Rows: d.Metadata.Rows}
	o := d.readerOptions()
	o.Arrays = true
	return openBlock(d, id, func(src block.Source) (*cfile.Reader, error) {
		f, err := cfile.OpenDamaged(src, o, known)
		if err != nil {
			return nil, err
		}
		if info := f.Info(); info.Type != known.Type || info.Array != known.Array ||
			info.Nullable && !known.Nullable || f.Rows() != known.Rows {
			return nil, fault.Corruptf("block %d: has type %s, arrays %t, nullable %t, %d rows", id, info.Type,
				info.Array, info.Nullable, f.Rows())
		}
		return f, nil
	})
}
