package arena

import "sync"

// journalChunk is the number of records that a Journal allocates at a time.
const journalChunk = 256

// Journal is a list of small records without pointers, in the order of addition. Any number of
// goroutines may add and read concurrently; records are immutable once added.
type Journal[T any] struct {
	bytes int64 // of a record
	grow  func(n int64)

	mu     sync.Mutex
	chunks [][]T // all full but the last
}

// NewJournal returns an empty journal of records of the given size. grow, if not nil, is called
// with the number of bytes allocated, and with the negative sum on Release.
func NewJournal[T any](recordBytes int64, grow func(n int64)) *Journal[T] {
	if grow == nil {
		grow = func(int64) {}
	}
	return &Journal[T]{bytes: recordBytes, grow: grow}
}

// Add appends a record.
func (j *Journal[T]) Add(rec T) {
	j.mu.Lock()
	defer j.mu.Unlock()
	last := len(j.chunks) - 1
	if last < 0 || len(j.chunks[last]) == journalChunk {
		j.chunks = append(j.chunks, make([]T, 0, journalChunk))
		j.grow(journalChunk * j.bytes)
		last++
	}
	j.chunks[last] = append(j.chunks[last], rec)
}

// Next returns some records from position i on, none at the end. The caller must not modify them.
func (j *Journal[T]) Next(i int) []T {
	j.mu.Lock()
	defer j.mu.Unlock()
	if i/journalChunk >= len(j.chunks) {
		return nil
	}
	return j.chunks[i/journalChunk][i%journalChunk:]
}

// Release calls grow with the negative size of the Journal. Add must not be called afterwards;
// Release may be called again and then does nothing.
func (j *Journal[T]) Release() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.grow(-int64(len(j.chunks)) * journalChunk * j.bytes)
	j.chunks = nil
}
