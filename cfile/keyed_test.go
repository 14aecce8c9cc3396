package cfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// keyedFile writes cells to a Keyed file whose indexes have several leaves.
func keyedFile(t *testing.T, cells [][]byte) *Reader {
	t.Helper()
	return keyedFileOf(t, cells, 100)
}

// keyedFileOf writes cells to a Keyed file with index nodes of a given size.
func keyedFileOf(t *testing.T, cells [][]byte, nodeBytes int) *Reader {
	t.Helper()
	sink := &block.Memory{Number: 1}
	w, err := NewWriter(sink, WriterOptions{Type: schema.Binary, Encoding: schema.Plain,
		Compression: schema.NoCompression, BlockBytes: 512, IndexBlockBytes: nodeBytes,
		PositionalIndex: true, Keyed: true, Exact: true})
	if err == nil {
		err = w.Append(&batch.Vector{Type: schema.Binary, Len: len(cells), Bytes: cells})
	}
	if err == nil {
		err = w.Finish()
	}
	must.Do(t, err)
	return must.Get(Open(sink, ReaderOptions{}))(t)
}

// randomKeyed returns keys in order, some of them prefixes of others, and their cells.
func randomKeyed(r *rand.Rand, n int) (keys []string, cells [][]byte) {
	for range n {
		keys = append(keys, strings.Repeat(string(rune('a'+r.IntN(4))), r.IntN(5))+fmt.Sprint(r.IntN(n)))
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for i, k := range keys {
		cells = append(cells, AppendKeyed(nil, []byte(k), bytes.Repeat([]byte{byte(i)}, r.IntN(300))))
	}
	return keys, cells
}

func TestVisitFloorFindsEachKey(t *testing.T) {
	must.Equal(t, string(AppendKeyed(nil, []byte("ab"), []byte("xyz"))), "\x02abxyz")
	r := seedtest.Rand(t)
	for _, n := range []int{0, 1, 7, 500} {
		keys, cells := randomKeyed(r, n)
		f := keyedFile(t, cells)
		must.Do(t, f.Verify(), n)
		for _, probe := range append(slices.Clone(keys), "", "a", "zz", "bb1", "5") {
			want, exists := slices.BinarySearch(keys, probe)
			if !exists {
				want-- // the last key before it
			}
			got := -1
			err := f.VisitFloor([]byte(probe), func(row batch.Ordinal, at, value []byte) error {
				got = int(row)
				if got != want || string(at) != keys[got] || !bytes.Equal(AppendKeyed(nil, at, value), cells[row]) {
					t.Errorf("%q: row %d, key %q, value %x", probe, row, at, value)
				}
				return nil
			})
			if err != nil || got < 0 && exists {
				t.Errorf("%q: row %d, %v, want %d", probe, got, err, want)
			}
		}
	}
}

// The ordinal index lists fewer cblocks than the value index, which alone finds keys.
func TestVisitFloorNeedsNoOrdinalIndex(t *testing.T) {
	keys, cells := randomKeyed(seedtest.Rand(t), 500)
	src := keyedFile(t, cells).src.(*block.Memory)
	f := open(t, src, nil)
	x := must.Get(f.ordinalIndex())(t)
	leaf := slices.IndexFunc(x.nodes, func(p BlockPointer) bool { return p.Offset < f.ordinalRoot.Offset })
	changeFooter(t, src, func(footer *kudupb.CFileFooterPB) { footer.PosidxInfo.RootBlock = x.nodes[leaf].message() })
	f = open(t, src, nil)
	must.Fail(t, f.Verify(), fault.ErrCorrupt)
	for i, key := range keys {
		found := false
		err := f.VisitFloor([]byte(key), func(row batch.Ordinal, _, _ []byte) error {
			found = int(row) == i
			return nil
		})
		must.Do(t, err, i, len(keys))
		must.Equal(t, found, true, i, len(keys))
	}
}

// changeFooter replaces the footer of a file with checksums.
func changeFooter(t *testing.T, src *block.Memory, change func(*kudupb.CFileFooterPB)) {
	t.Helper()
	end := len(src.Bytes) - len(magicV2) - 4
	start := end - int(binary.LittleEndian.Uint32(src.Bytes[len(src.Bytes)-4:]))
	var footer kudupb.CFileFooterPB
	err := proto.Unmarshal(src.Bytes[start:end], &footer)
	if err == nil {
		change(&footer)
		src.Bytes, err = appendFooter(src.Bytes[:start-4], &footer, true)
	}
	must.Do(t, err)
}

func TestVerifyFindsKeysThatDoNotAscend(t *testing.T) {
	r := seedtest.Rand(t)
	_, cells := randomKeyed(r, 200)
	i := 1 + r.IntN(len(cells)-1)
	cells[i] = slices.Clone(cells[i-1])
	must.Fail(t, keyedFile(t, cells).Verify(), fault.ErrCorrupt)
	cells[i] = []byte{200} // a length of two bytes, cut
	must.Fail(t, keyedFile(t, cells).Verify(), fault.ErrCorrupt)
	must.Fail(t, must.Err(NewWriter(&block.Memory{}, WriterOptions{Type: schema.String, Keyed: true})),
		fault.ErrUnsupported)
}
