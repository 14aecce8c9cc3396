package carbondata

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/internal/must"
)

// longRows writes a folder of pages of ten rows of a number and a text, and returns it with the
// bytes that its pages of text become, without those that are free.
func longRows(t *testing.T, pages, length int) (folder string, bytes int64) {
	folder = filepath.Join(t.TempDir(), "folder")
	w := must.Get(Create(folder, []Column{{Name: "n", Type: Long}, {Name: "text", Type: Varchar}},
		WriterOptions{Compressor: codec.Zstd, PageRows: 10, NoLocalDictionary: true}))(t)
	defer w.Abort()
	for i := range 10 * pages {
		must.Do(t, w.Append([]any{int64(i), fmt.Sprint(i%10) + strings.Repeat("x", length-1)}))
	}
	must.Do(t, w.Close())
	return folder, int64(10 * pages * (longLengthLen + length - cellWork))
}

// TestScansCountWhatTheyUncompress scans and verifies a file, and then again with a limit that its
// pages exceed at some point.
func TestScansCountWhatTheyUncompress(t *testing.T) {
	const pages, length = 12, 2000
	folder, bytes := longRows(t, pages, length)
	table := must.Get(Open(folder))(t)
	defer table.Close()
	f := table.files[0].File
	limit := f.newWork().left.Load()
	must.Equal(t, limit, minWork+workRatio*f.src.Size())
	for _, least := range []int64{0, bytes / 2} { // what is left, before the pages after the first
		p, err := table.pages(ScanOptions{})
		must.Do(t, err)
		first := p.pageReader
		read := 0
		for ; ; read++ {
			more, scanErr := p.next(t.Context())
			if err = scanErr; !more {
				break
			}
			if read == 0 && least > 0 {
				first.memory.work.left.Add(least - limit)
			}
		}
		left := first.memory.work.left.Load()
		if least == 0 && (err != nil || read != pages || limit-left != bytes) {
			t.Errorf("%d pages, %d bytes counted, want %d and %d: %v", read, limit-left, pages, bytes, err)
		}
		if least > 0 && (!errors.Is(err, ErrUnsupported) || read == 0 || read >= pages ||
			left < -int64(maxProcs)*bytes/pages) {
			t.Errorf("with a limit of %d: %d pages, %d bytes left: %v", least, read, left, err)
		}
	}
	v := verifier{file: f}
	must.Do(t, v.verify(t.Context()))
	must.Equal(t, limit-v.work.left.Load(), bytes, "bytes that verify counted")
}

// TestBlockletsDoNotShareBytes has a chunk in several blocklets: a small file would contain any
// number of rows, and take any time.
func TestBlockletsDoNotShareBytes(t *testing.T) {
	page := anyStruct{pageMeta: anyStruct{metaCodec: i32(0), metaCompressor: []byte(codec.Snappy)},
		pageEncoders: anyListOf(i32(int(encVarchar)))}
	column := anyStruct{columnName: []byte("c"), columnID: []byte("c"), columnOrdinal: i32(0),
		columnType: i32(int(Varchar)), columnDimension: true}
	for times, want := range map[int]error{1: nil, 2: ErrCorrupt, 1000: ErrCorrupt} {
		data := repeatedFile(1, times, []storedChunk{newChunk(column, page, 1, []byte("\x08\x1c\x00\x00\x00\x04abcd"))})
		must.Fail(t, must.Err(OpenFile(&block.Memory{Bytes: data})), want, times)
	}
}
