package output

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

var parallelColumns = []schema.Column{{Name: "n", Type: schema.Int64},
	{Name: "text", Type: schema.String, Nullable: true}}

// numbered returns batches of some rows each, with byte strings of the given sizes. The rows of
// even numbers are selected. After them comes an error, unless it is nil.
func numbered(batches, rows int, size func(batch int) int, after error) iter.Seq2[*batch.RecordBatch, error] {
	return func(yield func(*batch.RecordBatch, error) bool) {
		for k := range batches {
			b := batch.New(parallelColumns, rows)
			for i := range rows {
				batch.Values[int64](b.Columns[0])[i] = int64(k*rows + i)
				b.Columns[1].SetCell(i, bytes.Repeat([]byte{'x'}, size(k)))
				if i%3 == 0 {
					b.Columns[1].SetCell(i, nil)
				}
				if i%2 == 1 {
					b.Selection.Clear(i)
				}
			}
			if !yield(b, nil) {
				return
			}
		}
		if after != nil {
			yield(nil, after)
		}
	}
}

// The text is the same for any number of goroutines.
func TestGoroutinesWriteWhatOneDoes(t *testing.T) {
	large := func(k int) int { // every tenth batch is written alone
		if k%10 == 9 {
			return largeBatchBytes / 20
		}
		return k
	}
	for _, form := range []Format{JSONL, CSV, JSON, Table} {
		if invariant.Race && form != JSON { // the others share its goroutines
			continue
		}
		var want bytes.Buffer
		one := New(&want, form, parallelColumns)
		for b := range numbered(40, 100, large, nil) {
			must.Do(t, one.Write(b))
		}
		must.Do(t, one.Close())
		for _, workers := range []int{0, 1, 3} {
			var got bytes.Buffer
			last := int64(0)
			w := New(&got, form, parallelColumns)
			rows, err := w.WriteAll(numbered(40, 100, large, nil), workers, func(rows int64) {
				if rows < last {
					t.Errorf("progress goes from %d to %d", last, rows)
				}
				last = rows
			})
			if err == nil {
				err = w.Close()
			}
			if err != nil || rows != 2000 || last != rows || !bytes.Equal(got.Bytes(), want.Bytes()) {
				t.Errorf("form %d, %d workers: %d rows, %v, progress %d, or other text", form, workers, rows, err, last)
			}
		}
	}
}

// failingWriter fails after some bytes.
type failingWriter struct{ left int }

var errWrite = errors.New("no space")

func (f *failingWriter) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errWrite
	}
	return len(p), nil
}

func TestErrorsEndParallelWriting(t *testing.T) {
	size := func(int) int { return 10 }
	failed := errors.New("damaged")
	for _, workers := range []int{0, 1, 3} {
		w := New(&strings.Builder{}, CSV, parallelColumns)
		if _, err := w.WriteAll(numbered(50, 10, size, failed), workers, func(int64) {}); err != failed {
			t.Errorf("%d workers: %v", workers, err)
		}
		for _, left := range []int{0, 10, 5000} {
			endless := func(yield func(*batch.RecordBatch, error) bool) {
				for {
					for b, err := range numbered(50, 10, size, nil) {
						if !yield(b, err) {
							return
						}
					}
				}
			}
			w := New(&failingWriter{left}, CSV, parallelColumns)
			_, err := w.WriteAll(endless, workers, func(int64) {})
			if err != errWrite || fmt.Sprint(w.Close()) != fmt.Sprint(errWrite) {
				t.Errorf("%d workers, a writer of %d bytes: %v", workers, left, err)
			}
		}
	}
}
