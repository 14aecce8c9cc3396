package damage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// markedRows is the number of rows of a Marked: several cblocks of each column.
const markedRows = 34000

// Marked is an open store whose cache has no room for the cblocks of its one table, so that reads by key
// take parts of cblocks by their marks. Bits of its files can be flipped one at a time while it is open.
type Marked struct {
	rng   *rand.Rand
	fs    *vfs.Mem
	store *oribi.Store
	table *oribi.Table
	rows  []*batch.Vector // of all rows
	files []bitFile       // of blocks
	bits  int64
}

// NewMarked creates a Marked with random rows. Close closes it.
func NewMarked(seed uint64) (m *Marked, err error) {
	m = &Marked{rng: rand.New(rand.NewPCG(seed, 8)), fs: vfs.NewMem()}
	scarce := store.ScarceCache.Load()
	store.ScarceCache.Store(true)
	m.store, err = oribi.Open(history.Dir, &oribi.Options{FS: m.fs, Manual: true})
	store.ScarceCache.Store(scarce)
	if err == nil {
		err = m.fill()
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Close closes the store.
func (m *Marked) Close() error { return m.store.Close() }

func (m *Marked) fill() error {
	s, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "n", Type: schema.Int64, Nullable: true},
		{Name: "d", Type: schema.Double}, {Name: "s", Type: schema.String, BlockBytes: 64 << 10}, {Name: "w", Type: schema.String},
		{Name: "b", Type: schema.Bool}, {Name: "t", Type: schema.Timestamp}}, 1)
	if err != nil {
		return err
	}
	if m.table, err = m.store.CreateTable("t", s, oribi.RowFile(schema.NoRowFile)); err != nil {
		return err
	}
	b := batch.New(s.Columns, markedRows)
	m.rows = b.Columns
	key := int64(0)
	for i := range markedRows {
		key += 1 + m.rng.Int64N(1000)
		batch.Values[int64](m.rows[0])[i] = key
		batch.Values[int64](m.rows[1])[i] = m.rng.Int64()
		if m.rng.IntN(3000) == 0 {
			m.rows[1].SetCell(i, nil)
		}
		batch.Values[float64](m.rows[2])[i] = m.rng.Float64()
		m.rows[3].Bytes[i] = fmt.Appendf(nil, "%x", m.rng.Uint64())
		m.rows[4].Bytes[i] = fmt.Appendf(nil, "word %d", m.rng.IntN(100))
		m.rows[5].Data[i] = byte(m.rng.IntN(2))
		batch.Values[int64](m.rows[6])[i] = 1e15 + 1000*key
	}
	batches := func(yield func([]*batch.Vector, error) bool) { yield(m.rows, nil) }
	if _, _, err := m.table.Ingest(context.Background(), iter.Seq2[[]*batch.Vector, error](batches)); err != nil {
		return err
	}
	data := filepath.Join(history.Dir, strings.TrimSuffix(dataDir, "/"))
	names, err := m.fs.List(data)
	if err != nil {
		return err
	}
	for _, name := range names {
		name = filepath.Join(data, name)
		info, err := m.fs.Stat(name)
		if err != nil {
			return err
		}
		if n := 8 * (info.Size() - headerPage); n > 0 {
			m.files = append(m.files, bitFile{name, m.bits, n / 8})
			m.bits += n
		}
	}
	return m.read(100) // makes the marks
}

// Flip flips random bits of the files, one after the other, and reads after each: what it reads is right,
// or the read returns an error.
func (m *Marked) Flip(flips int, more func() bool) (c BitCounts, err error) {
	for ; flips > 0 && more(); flips-- {
		bit := m.rng.Int64N(m.bits)
		k := len(m.files) - 1
		for m.files[k].first > bit {
			k--
		}
		f := Flip{m.files[k].name, headerPage + (bit-m.files[k].first)/8, 1 << (bit % 8)}
		if err := flip(m.fs, f); err != nil {
			return c, err
		}
		err := m.read(100)
		if err == nil {
			err = m.read(1) // the part may have none of the rows
		}
		if undo := flip(m.fs, f); undo != nil {
			return c, undo
		}
		if c.Flips++; err == nil {
			c.Unused++
			continue
		}
		c.Errors++
		if damaged(err) != nil {
			return c, fmt.Errorf("%v: %w", f, err)
		}
	}
	if n, err := m.store.Metrics(); err != nil || n.Cache.Parts == 0 {
		return c, errors.Join(err, fmt.Errorf("no read has used marks"))
	}
	return c, m.read(1)
}

// read reads one in so many rows by their keys.
func (m *Marked) read(step int) error {
	var first error
	for i := m.rng.IntN(step); i < markedRows; i += step {
		_, cells, err := m.table.GetCells(context.Background(), [][]byte{m.rows[0].Cell(i)})
		if err != nil {
			if first = err; damaged(err) != nil || errors.Is(err, fs.ErrNotExist) {
				return err
			}
			continue
		}
		for c, v := range m.rows {
			if want := v.Cell(i); (want == nil) != (cells[c] == nil) || !bytes.Equal(want, cells[c]) {
				return fmt.Errorf("%w: row %d, column %d: %x, want %x", errWrong, i, c, cells[c], want)
			}
		}
	}
	return first
}
