package carbondata

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
)

// manyPages writes a folder of some blocklets, each of many pages.
func manyPages(t *testing.T) (dir string, columns []Column) {
	columns = []Column{column("id", Long), column("word", String), column("text", String),
		column("price", Decimal), column("day", Date)}
	var rows [][]any
	const n, pageRows = 5000, 100
	for i := range n {
		row := []any{int64(i), fmt.Sprint("word", i%7), strings.Repeat(fmt.Sprint(i), 1+i%30), nil, Days(i % 300)}
		if i%3 > 0 {
			row[3] = batch.Int128Of(int64(i * i))
		}
		rows = append(rows, row)
	}
	return writeFolder(t, columns, WriterOptions{PageRows: pageRows, BlockletBytes: 20 << 10}, rows), columns
}

// withProcs calls f with some values of GOMAXPROCS.
func withProcs(f func(procs int)) {
	for _, procs := range []int{1, 2, 3, 8} {
		before := runtime.GOMAXPROCS(procs)
		f(procs)
		runtime.GOMAXPROCS(before)
	}
}

// TestReadAheadChangesNothing compares scans with one and with more CPUs: rows and statistics,
// while pages are read ahead.
func TestReadAheadChangesNothing(t *testing.T) {
	dir, columns := manyPages(t)
	table := must.Get(Open(dir))(t)
	defer table.Close()
	for _, f := range []Filter{{}, Eq("word", "word3"), Eq("id", int64(2345)),
		Or(Lt("id", int64(777)), Ge("id", int64(4001))), And(IsNull("price"), Gt("day", Days(290)))} {
		o := ScanOptions{Filter: f}
		var want [][]any
		var stats ScanStats
		withProcs(func(procs int) {
			o.Stats = new(ScanStats)
			rows := scanRows(t, table, o)
			got, s := batchRows(t, table, o, columns)
			if procs == 1 {
				want, stats = rows, *o.Stats
				if stats.Blocklets < 2 || stats.Pages < 8*stats.Blocklets {
					t.Fatalf("%+v", stats)
				}
			}
			if !sameRows(rows, want) || !sameRows(got, want) {
				t.Errorf("%s: %d and %d rows with %d processors, want %d", filterText(f),
					len(rows), len(got), procs, len(want))
			}
			must.Equal(t, *o.Stats, stats, procs)
			must.Equal(t, s.Stats(), stats, procs)
		})
	}
}

// TestReadAheadIsLimited checks after each page how many readers there are, and the sum of their
// memory limits.
func TestReadAheadIsLimited(t *testing.T) {
	dir, _ := manyPages(t)
	table := must.Get(Open(dir))(t)
	defer table.Close()
	for _, little := range []bool{false, true} {
		withProcs(func(procs int) {
			s := must.Get(table.pages(ScanOptions{}))(t)
			defer s.stop()
			most := 0
			for {
				more := must.Get(s.next(t.Context()))(t)
				if !more {
					break
				}
				first := s.readers[0]
				if little && s.page == 0 {
					need, ok := first.need(1)
					must.Equal(t, ok, true, "the memory for a page is not known")
					first.headers = need + need/2 // too little for two pages
				}
				taken := 0
				for _, r := range s.readers {
					taken += r.taken
				}
				if taken > first.headers {
					t.Errorf("%d processors: %d bytes taken of %d", procs, taken, first.headers)
				}
				if got := len(s.readers) - len(s.free); got != 1+len(s.ahead) || got > procs || got > maxProcs {
					t.Errorf("%d processors: %d readers, %d free, %d ahead", procs,
						len(s.readers), len(s.free), len(s.ahead))
				}
				most = max(most, len(s.ahead))
			}
			if want := min(procs, maxProcs) - 1; !little && most != want || little && most > 0 {
				t.Errorf("%d processors, little memory %v: %d pages ahead, want %d", procs, little, most, want)
			}
		})
	}
}

// TestReadAheadStops leaves a scan while pages are read ahead: no reader works afterwards.
func TestReadAheadStops(t *testing.T) {
	dir, _ := manyPages(t)
	table := must.Get(Open(dir))(t)
	defer table.Close()
	withProcs(func(procs int) {
		s := must.Get(table.Scan(t.Context(), ScanOptions{}))(t)
		for range 3 {
			if !s.Next() {
				t.Fatal(s.Err())
			}
		}
		p := s.pages
		if procs > 1 && len(p.ahead) == 0 {
			t.Errorf("%d processors: nothing is read ahead", procs)
		}
		if err := s.Close(); err != nil || len(p.ahead) > 0 {
			t.Errorf("%d processors: %d pages ahead after Close: %v", procs, len(p.ahead), err)
		}
	})
}

// TestDamagedPageAmongPagesAhead damages a page: all rows before it are returned, then its error,
// however many pages are read ahead.
func TestDamagedPageAmongPagesAhead(t *testing.T) {
	dir, _ := manyPages(t)
	table := must.Get(Open(dir))(t)
	defer table.Close()
	f := table.files[0].File
	const blocklet, page = 1, 5
	rows := f.blocklets[0].rows
	for _, n := range f.blocklets[blocklet].pageRows[:page] {
		rows += n
	}
	place := slices.IndexFunc(f.columns, func(c Column) bool { return c.Name == "text" })
	c := must.Get(f.readChunk(&f.blocklets[blocklet], f.columns[place].first, &memory{left: 1 << 20}))(t)
	names := must.Get(filepath.Glob(filepath.Join(dir, "*"+dataSuffix)))(t)
	must.Equal(t, len(names), 1)
	file := must.Get(os.OpenFile(names[0], os.O_WRONLY, 0))(t)
	defer file.Close()
	must.Get(file.WriteAt([]byte{0xff, 0xff, 0x7f}, c.pages[page].offset))(t)
	withProcs(func(procs int) {
		got := 0
		var err error
		for _, err = range table.Rows(t.Context(), ScanOptions{}) {
			if err == nil {
				got++
			}
		}
		want := fmt.Sprintf(`blocklet %d: column "text": page %d: `, blocklet, page)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), want) || got != rows {
			t.Errorf("%d processors: %d rows, want %d: %v, want %s", procs, got, rows, err, want)
		}
	})
}
