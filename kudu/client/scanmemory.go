package client

import (
	"sync"

	"github.com/oribi-db/oribi/internal/kudurow"
)

// memory bounds the bytes of answers.
type memory struct {
	limit int

	mu    sync.Mutex
	used  int
	freed chan struct{} // is closed when used falls; nil if nobody waits
}

// take notes an answer of about so many bytes if it fits, or is the only one, and returns nil. Otherwise it
// returns a channel that is closed when it may be tried again.
func (m *memory) take(bytes int) (freed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used > 0 && m.used+bytes > m.limit {
		if m.freed == nil {
			m.freed = make(chan struct{})
		}
		return m.freed
	}
	m.used += bytes
	return nil
}

// resize notes the real size of an answer, 0 for one that is no longer in use.
func (m *memory) resize(from, to int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used += to - from
	if to < from && m.freed != nil {
		close(m.freed)
		m.freed = nil
	}
}

// answerMemory is memory that answers use, one after the other.
type answerMemory struct {
	buffer  []byte
	decoder kudurow.Decoder
}

// answers has memory of answers that are no longer in use, of any scan.
var answers = sync.Pool{New: func() any { return &answerMemory{} }}

// give lets other answers use m, unless it is large.
func (m *answerMemory) give() {
	if cap(m.buffer) <= 2*maxScanBatch {
		answers.Put(m)
	}
}

// end ends the use of an answer.
func (s *Scan) end(a *answer) {
	s.memory.resize(a.bytes, 0)
	a.memory.give()
}
