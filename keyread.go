package oribi

import (
	"sync"
)

// keyRead is the memory of a read of one row: the buffer of the encoded key and the options escape.
type keyRead struct {
	o   readOptions
	key []byte
}

// maxKeptKey is the size of the largest buffer that a keyRead keeps.
const maxKeptKey = 4 << 10

var keyReads = sync.Pool{New: func() any { return &keyRead{key: make([]byte, 0, 128)} }}

func (k *keyRead) release() {
	if k.o = (readOptions{}); cap(k.key) <= maxKeptKey {
		keyReads.Put(k)
	}
}
