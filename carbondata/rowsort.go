package carbondata

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
)

// rowSorter sorts rows by sort columns as CarbonData orders them: text by unsigned bytes, numbers,
// dates, and times by value, false before true, nulls first. Equal rows keep their order.
//
// It keeps rows in memory as bytes until these have reached a limit, and then writes them, sorted,
// to a temporary file as a run. Runs are merged, so many at once as fit into the memory; if there
// are more, in several passes. The temporary files have no names, except where the system cannot
// remove an open file.
//
// Calls come in this order: add for each row, sorted once, close.
type rowSorter struct {
	code   *rowCode
	memory int64
	dir    string

	chunks  [][]byte // rows; only the last one has room
	rows    []sortRow
	used    int64 // bytes of chunks and rows
	scratch []byte

	file *sortFile // of runs; nil before the first
	runs []sortRun
}

// sortRow is a row in memory: its length in 4 bytes, then as rowCode encodes it.
type sortRow struct {
	prefix uint64 // first bytes of the key
	chunk  uint32
	at     uint32 // in the chunk
}

// newRowSorter returns a sorter of rows with the given columns. keys are the sort columns, first
// the most significant, as indexes in columns. memory bounds the bytes of rows in memory; a single
// row may be larger. dir is the directory of temporary files; "" means os.TempDir.
func newRowSorter(columns []Column, keys []int, memory int64, dir string) *rowSorter {
	return &rowSorter{code: newRowCode(columns, keys), memory: max(memory, minSortMemory), dir: dir}
}

// add adds a row, which the caller may change afterwards. Values have the Go types that Type gives.
// Errors: errors of the temporary file; a value of another type.
func (s *rowSorter) add(row []any) (err error) {
	b := append(s.scratch[:0], 0, 0, 0, 0)
	if b, err = s.code.appendRow(b, row); err != nil {
		return err
	}
	s.scratch = b
	if cap(s.scratch) > sortChunkBytes {
		s.scratch = nil
	}
	binary.LittleEndian.PutUint32(b, uint32(len(b)-rowLenBytes))
	if s.full(len(b)) && len(s.rows) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	if !s.hasRoom(len(b)) {
		s.chunks = append(s.chunks, make([]byte, 0, s.chunkBytes(len(b))))
		s.used += int64(s.chunkBytes(len(b)))
	}
	key, err := rowKey(b[rowLenBytes:])
	if err != nil {
		return err
	}
	last := len(s.chunks) - 1
	s.rows = append(s.rows, sortRow{keyPrefix(key), uint32(last), uint32(len(s.chunks[last]))})
	s.chunks[last] = append(s.chunks[last], b...)
	s.used += sortRowBytes
	return nil
}

// full reports whether n more bytes would exceed the memory.
func (s *rowSorter) full(n int) bool {
	used := s.used + sortRowBytes
	if !s.hasRoom(n) {
		used += int64(s.chunkBytes(n))
	}
	return used > s.memory
}

// hasRoom reports whether n more bytes fit into the last chunk.
func (s *rowSorter) hasRoom(n int) bool {
	last := len(s.chunks) - 1
	return last >= 0 && cap(s.chunks[last])-len(s.chunks[last]) >= n
}

// chunkBytes returns the size of a new chunk for a row of n bytes.
func (s *rowSorter) chunkBytes(n int) int { return max(n, int(min(sortChunkBytes, s.memory/8))) }

// keyPrefix returns the first bytes of a key as a number that sorts like them.
func keyPrefix(key []byte) uint64 {
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// bytes returns the encoded row.
func (s *rowSorter) bytes(r sortRow) []byte {
	b := s.chunks[r.chunk][r.at:]
	return b[rowLenBytes:][:binary.LittleEndian.Uint32(b)]
}

// sort sorts the rows in memory.
func (s *rowSorter) sort() {
	slices.SortFunc(s.rows, func(a, b sortRow) int {
		if c := cmp.Compare(a.prefix, b.prefix); c != 0 {
			return c
		}
		x, _ := rowKey(s.bytes(a)) // add has checked them
		y, _ := rowKey(s.bytes(b))
		return cmp.Or(bytes.Compare(x, y), cmp.Compare(a.chunk, b.chunk), cmp.Compare(a.at, b.at))
	})
}

// spill writes the rows in memory as a run.
func (s *rowSorter) spill() error {
	s.sort()
	if s.file == nil {
		var err error
		if s.file, err = newSortFile(s.dir); err != nil {
			return sortError(err)
		}
	}
	w := s.newRun(s.file)
	for _, r := range s.rows {
		if err := w.add(s.bytes(r)); err != nil {
			return sortError(err)
		}
	}
	run, err := w.end()
	if err != nil {
		return sortError(err)
	}
	s.runs = append(s.runs, run)
	clear(s.chunks)
	s.chunks, s.rows, s.used = s.chunks[:0], s.rows[:0], 0
	return nil
}

func sortError(err error) error { return fmt.Errorf("sort: %w", err) }

// sorted returns all rows in order; they belong to the caller. The first error ends the iteration.
// Errors: errors of the temporary files; ErrCorrupt for bytes in them that have changed.
func (s *rowSorter) sorted() iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		encoded := s.inMemory
		if len(s.runs) > 0 {
			if err := s.mergeDown(); err != nil {
				yield(nil, err)
				return
			}
			encoded = func() iter.Seq2[[]byte, error] { return mergeRuns(s.file, s.runs) }
		}
		for b, err := range encoded() {
			var row []any
			if err == nil {
				row, err = s.code.row(b)
			}
			if err != nil {
				yield(nil, sortError(err))
				return
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// inMemory returns the rows in memory in order.
func (s *rowSorter) inMemory() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		s.sort()
		for _, r := range s.rows {
			if !yield(s.bytes(r), nil) {
				return
			}
		}
	}
}

// mergeDown writes the rows in memory as the last run, and merges runs until there are so few that
// one merge can read them all. Each pass merges neighboring runs from one file to a new one.
func (s *rowSorter) mergeDown() error {
	if len(s.rows) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.chunks, s.rows, s.scratch = nil, nil, nil
	for len(s.runs) > s.fanIn() {
		if err := s.mergePass(); err != nil {
			return sortError(err)
		}
	}
	return nil
}

// fanIn returns how many runs a merge may read: it needs a frame of each in memory, and writes one.
func (s *rowSorter) fanIn() int {
	largest := int64(1)
	for _, r := range s.runs {
		largest = max(largest, r.largest)
	}
	const most = 64
	return int(min(max(s.memory/largest-1, 2), most))
}

func (s *rowSorter) mergePass() error {
	next, err := newSortFile(s.dir)
	if err != nil {
		return err
	}
	var runs []sortRun
	for group := range slices.Chunk(s.runs, s.fanIn()) {
		w := s.newRun(next)
		for b, err := range mergeRuns(s.file, group) {
			if err == nil {
				err = w.add(b)
			}
			if err != nil {
				next.close()
				return err
			}
		}
		run, err := w.end()
		if err != nil {
			next.close()
			return err
		}
		runs = append(runs, run)
	}
	s.file.close()
	s.file, s.runs = next, runs
	return nil
}

// close frees memory and files. It may be called at any time, and again.
func (s *rowSorter) close() {
	if s.file != nil {
		s.file.close()
	}
	s.file, s.runs, s.chunks, s.rows, s.scratch = nil, nil, nil, nil, nil
}

// newRun returns a writer of a run in the given file.
func (s *rowSorter) newRun(f *sortFile) *runWriter {
	const smallest, largest = 4 << 10, 256 << 10
	full := int(min(max(s.memory/64, smallest), largest))
	return &runWriter{file: f, run: sortRun{from: f.size, to: f.size}, full: full,
		frame: make([]byte, frameHead, full+full/4)}
}
