package encoding

import (
	"encoding/binary"
	"os"
	"syscall"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// The memory after the planes must not be read.
func TestGroupsEndWithThePlanes(t *testing.T) {
	page := os.Getpagesize()
	memory := must.Get(syscall.Mmap(-1, 0, 4*page, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE))(t)
	defer syscall.Munmap(memory)
	must.Do(t, syscall.Mprotect(memory[3*page:], syscall.PROT_NONE))
	r := seedtest.Rand(t)
	for n := 8; n <= 1024; n += 8 {
		var cells []byte
		for range n {
			cells = binary.LittleEndian.AppendUint64(cells, r.Uint64())
		}
		v := viewOf(cells, n, 8)
		at := 3*page - len(v.base)
		copy(memory[at:], v.base)
		v.base = memory[at : 3*page]
		sel := batch.MakeBitmap(n)
		for range 5 {
			sel.Set(r.IntN(n))
		}
		sel.Set(n - 1)
		checkGroups(t, &v, cells, true, sel)
	}
}
