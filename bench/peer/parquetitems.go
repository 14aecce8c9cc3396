package peer

import (
	"errors"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"

	"github.com/oribi-db/oribi/bench/inputs"
)

// ParquetItems calls use with each row of a Parquet file of lineitem, whoever has written it, in
// its order. It reads the file with parquet-go. The item is valid during the call; its strings stay
// valid.
func ParquetItems(name string, use func(it *inputs.Item)) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipBloomFilters(true))
	if err != nil {
		return err
	}
	for _, g := range file.RowGroups() {
		if err := groupItems(file.Schema(), g, use); err != nil {
			return err
		}
	}
	return nil
}

func groupItems(s *parquet.Schema, g parquet.RowGroup, use func(it *inputs.Item)) error {
	readers := make([]valueReader, len(sqlColumns))
	for i, name := range columnNames() {
		leaf, ok := s.Lookup(name)
		if !ok {
			return errors.New("no column " + name)
		}
		readers[i].pages = g.ColumnChunks()[leaf.ColumnIndex].Pages()
		defer readers[i].close()
	}
	for range g.NumRows() {
		var it inputs.Item
		for i, to := range sqlTargets(&it) {
			v, err := readers[i].next()
			if err != nil {
				return err
			}
			switch to := to.(type) {
			case *int64:
				*to = v.Int64()
			case *int32:
				*to = v.Int32()
			case *string:
				*to = string(v.ByteArray())
			}
		}
		use(&it)
	}
	return nil
}

// valueReader reads the values of a column of a row group one by one.
type valueReader struct {
	pages  parquet.Pages
	page   parquet.Page
	reader parquet.ValueReader // nil: page has no more
	values [512]parquet.Value
	at, n  int
}

func (r *valueReader) next() (parquet.Value, error) {
	for r.at == r.n {
		if r.reader == nil {
			r.release()
			page, err := r.pages.ReadPage()
			if err != nil {
				return parquet.Value{}, err
			}
			r.page, r.reader = page, page.Values()
		}
		n, err := r.reader.ReadValues(r.values[:])
		if r.at, r.n = 0, n; errors.Is(err, io.EOF) {
			r.reader = nil
		} else if err != nil {
			return parquet.Value{}, err
		}
	}
	r.at++
	return r.values[r.at-1], nil
}

func (r *valueReader) release() {
	if r.page != nil {
		parquet.Release(r.page)
		r.page = nil
	}
}

func (r *valueReader) close() {
	r.release()
	r.pages.Close()
}
