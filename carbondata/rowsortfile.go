package carbondata

import (
	"bytes"
	"container/heap"
	"encoding/binary"
	"io"
	"iter"
	"os"

	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
)

// sortFile is a temporary file of runs.
type sortFile struct {
	*os.File
	size int64
	name string // if the file could not be removed while it is open
}

func newSortFile(dir string) (*sortFile, error) {
	f, err := os.CreateTemp(dir, "oribi-sort-")
	if err != nil {
		return nil, err
	}
	file := &sortFile{File: f}
	if os.Remove(f.Name()) != nil {
		file.name = f.Name()
	}
	return file, nil
}

func (f *sortFile) close() {
	f.Close() // nobody reads it again
	if f.name != "" {
		os.Remove(f.name)
	}
}

// sortRun is a run in a file: frames, each the length of its rows in 4 bytes, their CRC-32C in 4
// bytes, and the rows in order, each after its length in 4 bytes.
type sortRun struct {
	from, to int64 // in the file
	largest  int64 // bytes of the largest frame
}

const frameHead = 8

// runWriter writes one run at the end of a file.
type runWriter struct {
	file  *sortFile
	run   sortRun
	full  int // bytes from which on a frame is written
	frame []byte
}

// add adds the next row of the run.
func (w *runWriter) add(row []byte) error {
	w.frame = binary.LittleEndian.AppendUint32(w.frame, uint32(len(row)))
	w.frame = append(w.frame, row...)
	if len(w.frame) < w.full {
		return nil
	}
	return w.flush()
}

func (w *runWriter) flush() error {
	if len(w.frame) == frameHead {
		return nil
	}
	binary.LittleEndian.PutUint32(w.frame, uint32(len(w.frame)-frameHead))
	binary.LittleEndian.PutUint32(w.frame[4:], coding.CRC32C(w.frame[frameHead:]))
	if _, err := w.file.WriteAt(w.frame, w.run.to); err != nil {
		return err
	}
	w.run.to += int64(len(w.frame))
	w.run.largest = max(w.run.largest, int64(len(w.frame)))
	w.file.size = w.run.to
	w.frame = w.frame[:frameHead]
	return nil
}

// end returns the complete run.
func (w *runWriter) end() (sortRun, error) {
	err := w.flush()
	return w.run, err
}

// runReader reads one run.
type runReader struct {
	file  *sortFile
	run   sortRun // what is not read yet
	index int     // of the run in the merge
	frame []byte
	rest  []byte // rows of the frame that are not read yet
	row   []byte // the current row
	key   []byte // its key
}

// next moves to the next row, which is valid until the following call. Errors: io.EOF at the end.
func (r *runReader) next() (err error) {
	if len(r.rest) == 0 {
		if err := r.readFrame(); err != nil {
			return err
		}
	}
	if len(r.rest) < rowLenBytes || uint64(binary.LittleEndian.Uint32(r.rest)) > uint64(len(r.rest)-rowLenBytes) {
		return r.damaged()
	}
	n := int(binary.LittleEndian.Uint32(r.rest))
	r.row, r.rest = r.rest[rowLenBytes:][:n], r.rest[rowLenBytes+n:]
	r.key, err = rowKey(r.row)
	return err
}

func (r *runReader) readFrame() error {
	if r.run.from == r.run.to {
		return io.EOF
	}
	var head [frameHead]byte
	if _, err := r.file.ReadAt(head[:], r.run.from); err != nil {
		return r.failed(err)
	}
	size := int64(binary.LittleEndian.Uint32(head[:])) + frameHead
	if size > min(r.run.largest, r.run.to-r.run.from) {
		return r.damaged()
	}
	if int64(cap(r.frame)) < size {
		r.frame = make([]byte, size)
	}
	r.frame = r.frame[:size]
	if _, err := r.file.ReadAt(r.frame, r.run.from); err != nil {
		return r.failed(err)
	}
	if r.rest = r.frame[frameHead:]; coding.CRC32C(r.rest) != binary.LittleEndian.Uint32(r.frame[4:]) {
		return r.damaged()
	}
	r.run.from += size
	return nil
}

// failed returns the error of a read. A file that ends early is damaged.
func (r *runReader) failed(err error) error {
	if err == io.EOF {
		return r.damaged()
	}
	return err
}

func (r *runReader) damaged() error {
	return fault.Corruptf("%s: rows at byte %d", r.file.Name(), r.run.from)
}

// mergeRuns returns the rows of several runs in order. A row is valid until the next one. Equal
// rows are in the order of their runs, so the sort is stable.
func mergeRuns(file *sortFile, runs []sortRun) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var heads runHeap
		for i, run := range runs {
			r := &runReader{file: file, run: run, index: i}
			if err := r.next(); err != nil {
				yield(nil, err)
				return
			}
			heads = append(heads, r)
		}
		heap.Init(&heads)
		for len(heads) > 0 {
			if !yield(heads[0].row, nil) {
				return
			}
			switch err := heads[0].next(); err {
			case nil:
				heap.Fix(&heads, 0)
			case io.EOF:
				heap.Pop(&heads)
			default:
				yield(nil, err)
				return
			}
		}
	}
}

// runHeap is a heap of runs by their current rows.
type runHeap []*runReader

func (h runHeap) Len() int { return len(h) }

func (h runHeap) Less(i, k int) bool {
	if c := bytes.Compare(h[i].key, h[k].key); c != 0 {
		return c < 0
	}
	return h[i].index < h[k].index
}

func (h runHeap) Swap(i, k int) { h[i], h[k] = h[k], h[i] }

func (h *runHeap) Push(r any) { *h = append(*h, r.(*runReader)) }

func (h *runHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	*h = (*h)[:last]
	return r
}

const (
	rowLenBytes = 4

	// Bytes of memory for a sortRow: their slice doubles when it is full.
	sortRowBytes = 3 * 16

	sortChunkBytes = 1 << 20

	minSortMemory = 64 << 10
)
