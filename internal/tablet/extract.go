package tablet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Extract flushes the table, then copies the files of all rowsets, as Files passes them on, as loose
// files into dir, which it creates (its parent must exist), with a tablet.json that describes them:
//
//	dir/tablet.json               columns, and the counts of rowsets that no file contains
//	dir/rowset-N/<column ID>.cfile
//	dir/rowset-N/adhoc.cfile      key index of a compound key
//	dir/rowset-N/bloom.bloom
//	dir/rowset-N/redo-I.delta     oldest first
//	dir/rowset-N/undo-I.delta     newest first; the last has the deletes that births stand for
//
// Rowsets are numbered from 0 in the order of their first keys. A Kudu tablet server can open these
// files. If Extract fails, it removes dir. Errors: os.ErrExist if dir exists; an untyped error if
// dir is in the directory of a store; the errors of Files. Source: tablet spec §8, §11.1.
func (t *Tablet) Extract(ctx context.Context, dir string) error {
	return t.exclusively(ctx, func() error { return t.extract(ctx, dir) })
}

// extract is Extract for the owner of the table.
func (t *Tablet) extract(ctx context.Context, dir string) (err error) {
	if err := instore.Check(vfs.OS, dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	return t.files(ctx, func(s *schema.Schema, sets iter.Seq2[rowset.Files, error]) error {
		about := tabletFile{Columns: columnsOf(s), RowSets: map[string]rowSetNumbers{}}
		for f, err := range sets {
			if err != nil {
				return err
			}
			n := strconv.Itoa(len(about.RowSets))
			if err := extractRowSet(ctx, filepath.Join(dir, "rowset-"+n), f); err != nil {
				return err
			}
			about.RowSets[n] = rowSetNumbers{LastDurableDMS: f.Metadata.LastDurableDMS, LiveRows: f.Metadata.LiveRows}
		}
		text, err := json.MarshalIndent(&about, "", "  ")
		if err != nil {
			return err
		}
		return writeFile(filepath.Join(dir, "tablet.json"), func(w io.Writer) error {
			_, err := w.Write(append(text, '\n'))
			return err
		})
	})
}

// tabletFile is the JSON of tablet.json.
type tabletFile struct {
	Columns []columnFile             `json:"columns"`
	RowSets map[string]rowSetNumbers `json:"rowsets"`
}

type rowSetNumbers struct {
	LastDurableDMS int64 `json:"last_durable_dms_id"`
	LiveRows       int64 `json:"live_row_count"`
}

type columnFile struct {
	ID          schema.ColumnID `json:"id"`
	Name        string          `json:"name"`
	Type        string          `json:"type"`            // of an array, the type of its elements
	Array       bool            `json:"array,omitempty"` // Kudu 1.18.1 cannot read arrays
	Key         bool            `json:"key"`
	Nullable    bool            `json:"nullable"`
	Immutable   bool            `json:"immutable,omitempty"`
	Encoding    string          `json:"encoding"`
	Compression string          `json:"compression"`
	Default     json.RawMessage `json:"read_default,omitempty"`
	Precision   int             `json:"precision,omitempty"`
	Scale       *int            `json:"scale,omitempty"` // decimals only; a scale of 0 is written too
	Length      int             `json:"length,omitempty"`
}

func columnsOf(s *schema.Schema) (out []columnFile) {
	for i := range s.Columns {
		c := &s.Columns[i]
		f := columnFile{ID: c.ID, Name: c.Name, Type: c.Stored().String(), Array: c.Type == schema.Array,
			Key: i < s.Keys, Nullable: c.Nullable, Immutable: c.Immutable,
			Encoding: c.Encoding.String(), Compression: c.Compression.Codec().String(), Precision: c.Precision,
			Length: c.Length}
		if c.Stored().Decimal() {
			f.Scale = &c.Scale
		}
		if c.ReadDefault != nil {
			f.Default = unscaled(c)
		}
		out = append(out, f)
	}
	return out
}

// unscaled returns the JSON of a column's read default, with decimals and dates as the integers
// that files contain.
func unscaled(c *schema.Column) json.RawMessage {
	plain := *c
	if t := c.Stored(); t.Width() > 0 {
		plain.Scale = 0
		if plain.Type = t.Physical(); c.Type == schema.Array {
			plain.Type, plain.Element = schema.Array, t.Physical()
		}
	}
	return celltext.AppendJSON(nil, &plain, c.ReadDefault)
}

// extractRowSet copies the files of a rowset to a new directory.
func extractRowSet(ctx context.Context, dir string, f rowset.Files) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	var err error
	put := func(id block.ID, name string) {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && id != 0 {
			err = copyBlock(f.Blocks, id, filepath.Join(dir, name))
		}
	}
	m := f.Metadata
	for _, c := range m.Columns {
		put(c.Block, fmt.Sprintf("%d.cfile", c.ID))
	}
	put(m.KeyIndex, "adhoc.cfile")
	put(m.Bloom, "bloom.bloom")
	for i, id := range m.Redo {
		put(id, fmt.Sprintf("redo-%d.delta", i))
	}
	for i, id := range m.Undo {
		put(id, fmt.Sprintf("undo-%d.delta", i))
	}
	return err
}

func copyBlock(blocks rowset.Blocks, id block.ID, name string) error {
	src, err := blocks.OpenBlock(id)
	if err != nil {
		return err
	}
	defer src.Close() // read-only: the error does not matter
	return writeFile(name, func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(src, 0, src.Size()))
		return err
	})
}

// writeFile creates a file, which must not exist.
func writeFile(name string, content func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(content(f), f.Close())
}
