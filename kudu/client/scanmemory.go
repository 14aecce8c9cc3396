package client

import "sync"

// memory bounds the bytes of answers, and keeps their memory for later ones.
type memory struct {
	limit int

	mu    sync.Mutex
	used  int
	freed chan struct{} // is closed when used falls; nil if nobody waits
	spare [][]byte
}

// spareAnswers is how many answers' memory a scan keeps.
const spareAnswers = 4

// take notes an answer of about so many bytes if it fits, or is the only one, and returns memory for it,
// nil if there is none. Otherwise it returns a channel that is closed when it may be tried again.
func (m *memory) take(bytes int) (buffer []byte, freed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used > 0 && m.used+bytes > m.limit {
		if m.freed == nil {
			m.freed = make(chan struct{})
		}
		return nil, m.freed
	}
	m.used += bytes
	if n := len(m.spare); n > 0 {
		buffer, m.spare = m.spare[n-1], m.spare[:n-1]
	}
	return buffer, nil
}

// resize notes the real size of an answer. The caller has not locked mu.
func (m *memory) resize(from, to int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(to - from)
}

// give returns the memory of an answer that was noted with its length.
func (m *memory) give(buffer []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.spare) < spareAnswers && cap(buffer) <= maxScanBatch {
		m.spare = append(m.spare, buffer)
	}
	m.add(-len(buffer))
}

// add changes the bytes in use. The caller has locked mu.
func (m *memory) add(bytes int) {
	m.used += bytes
	if bytes < 0 && m.freed != nil {
		close(m.freed)
		m.freed = nil
	}
}
