package output

import (
	"iter"
	"sync"

	"github.com/oribi-db/oribi/batch"
)

// largeBatchBytes is the size of the byte strings of a batch from which on it is written alone: the
// memory for the batches in flight is bounded by their number.
const largeBatchBytes = 4 << 20

// keptTextBytes is the size of the largest text whose memory is kept for another batch.
const keptTextBytes = 8 << 20

// piece is a batch and its text.
type piece struct {
	b    *batch.RecordBatch
	rows int
	text []byte
	made chan struct{} // closed when text is there
}

// WriteAll prints the selected rows of batches, and returns how many they are. The batches must be
// the caller's own: several of them are in use at a time. Goroutines, as many as workers, make
// their text; they end before WriteAll returns. progress is called with the number of rows printed
// so far.
//
// Errors: the first one of the batches, or of a write. Rows before it may not have been written.
// Forms other than JSONL and CSV are written by one goroutine.
func (w *Writer) WriteAll(
	batches iter.Seq2[*batch.RecordBatch, error], workers int, progress func(rows int64),
) (int64, error) {
	if !w.stateless() {
		workers = 0
	}
	p := &parallelWriter{w: w, todo: make(chan *piece, workers), order: make(chan *piece, 2*workers),
		spare: make(chan []byte, 3*workers+2), failed: make(chan struct{}), progress: progress}
	if w.flush(); w.err != nil {
		return 0, w.err
	}
	for range workers {
		p.running.Go(p.format)
	}
	p.running.Go(p.write)
	var err error
	for b, e := range batches {
		if err = e; err == nil {
			err = p.add(b, workers == 0)
		}
		if err != nil {
			break
		}
	}
	close(p.todo)
	close(p.order)
	p.running.Wait()
	if err == nil {
		err = w.err
	}
	return p.rows, err
}

// stateless reports whether the text of a row does not depend on those before it.
func (w *Writer) stateless() bool {
	switch r := w.rows.(type) {
	case *csvRows:
		return true
	case *jsonRows:
		return !r.array
	}
	return false
}

// parallelWriter is one call of WriteAll.
type parallelWriter struct {
	w        *Writer
	todo     chan *piece
	order    chan *piece // the same ones, in the order of the rows
	spare    chan []byte // memory of texts
	failed   chan struct{}
	progress func(rows int64)
	running  sync.WaitGroup

	pending sync.WaitGroup // pieces that are not written; at 0, rows and w belong to the caller
	rows    int64
}

// add prints a batch, or begins to.
func (p *parallelWriter) add(b *batch.RecordBatch, alone bool) error {
	if alone || isLarge(b) {
		p.pending.Wait()
		if err := p.w.Write(b); err != nil {
			return err
		}
		p.w.flush()
		p.wrote(b.Selected())
		return p.w.err
	}
	next := &piece{b: b, rows: b.Selected(), made: make(chan struct{})}
	select {
	case next.text = <-p.spare:
	default:
	}
	p.pending.Add(1)
	select {
	case <-p.failed:
		p.pending.Done()
		return p.w.err // set before failed was closed
	case p.order <- next:
		p.todo <- next
		return nil
	}
}

// isLarge reports whether the byte strings of a batch are large.
func isLarge(b *batch.RecordBatch) bool {
	size := 0
	for _, v := range b.Columns {
		if !v.Type.Variable() {
			continue
		}
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			size += len(v.Cell(i))
		}
	}
	return size >= largeBatchBytes
}

func (p *parallelWriter) wrote(rows int) {
	p.rows += int64(rows)
	p.progress(p.rows)
}

// format makes the text of pieces.
func (p *parallelWriter) format() {
	for next := range p.todo {
		text := next.text[:0]
		for i := next.b.Selection.Next(0); i >= 0; i = next.b.Selection.Next(i + 1) {
			text = p.w.rows.row(text, next.b.Columns, i)
		}
		next.text, next.b = text, nil
		close(next.made)
	}
}

// write writes the text of pieces. After an error it drops them.
func (p *parallelWriter) write() {
	for next := range p.order {
		<-next.made
		if p.w.err == nil {
			if _, p.w.err = p.w.out.Write(next.text); p.w.err != nil {
				close(p.failed)
			} else {
				p.wrote(next.rows)
			}
		}
		if cap(next.text) <= keptTextBytes {
			select {
			case p.spare <- next.text:
			default:
			}
		}
		p.pending.Done()
	}
}
