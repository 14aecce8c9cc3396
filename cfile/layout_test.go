package cfile

import (
	"errors"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// listed returns the list of cblocks of a file.
func listed(t *testing.T, src block.Source) (all []Cblock, r *Reader) {
	t.Helper()
	r = must.Get(Open(src, ReaderOptions{Arrays: true}))(t)
	must.Do(t, r.Cblocks(func(c Cblock) error {
		all = append(all, c)
		return nil
	}))
	return all, r
}

// Trees of several levels, a full dictionary and NULLs: Cblocks lists all cblocks in file order,
// without gaps.
func TestCblocksListsAllOfAFile(t *testing.T) {
	var cells [][]byte
	for i := range 3000 {
		cell := make([]byte, 16)
		for k := range cell {
			cell[k] = byte(i*i>>uint(k) + k)
		}
		if i%7 == 3 {
			cell = nil
		}
		cells = append(cells, cell)
	}
	src := writeAll(t, WriterOptions{Type: schema.Binary, Encoding: schema.Dictionary, Compression: schema.LZ4,
		Nullable:   true,
		BlockBytes: 512, IndexBlockBytes: 64, PositionalIndex: true}, vectorOf(schema.Binary, cells))
	all, r := listed(t, src)
	end, footer := r.Ends()
	rows, nulls, deepest := int64(0), 0, 0
	count := map[CblockKind]int{}
	perLevel := map[int]int{}
	coded, plain := 0, 0
	for _, c := range all {
		must.Equal(t, end, c.Pointer.Offset, c.Kind, c.Pointer)
		end = c.Pointer.end()
		count[c.Kind]++
		switch c.Kind {
		case DataCblock:
			must.Equal(t, c.First, rows)
			rows += int64(c.Rows)
			nulls += c.Nulls
			if c.Encoding == schema.Plain {
				plain++
			} else if c.Encoding == schema.Dictionary && plain == 0 {
				coded++
			} else {
				t.Errorf("%v after plain ones", c.Encoding)
			}
		case OrdinalIndexCblock:
			deepest = max(deepest, c.Level)
			perLevel[c.Level]++
		}
	}
	if end+footer != src.Size() || rows != 3000 || nulls != 429 {
		t.Errorf("cblocks end at %d, footer of %d, file of %d; %d rows, %d NULL", end, footer, src.Size(), rows, nulls)
	}
	if coded == 0 || plain == 0 || count[DictionaryCblock] != 1 || count[ZoneMapCblock] != 1 ||
		count[ValueIndexCblock] != 0 {
		t.Errorf("%d cblocks of codes, %d plain, %v", coded, plain, count)
	}
	if deepest < 3 || perLevel[1] != 1 || perLevel[2] >= perLevel[3] {
		t.Errorf("%d levels: %v", deepest, perLevel)
	}
}

// StringBytes applies to strings that are not stored as codes; BlockBytes applies to the dictionary
// and its codes.
func TestStringBytesLimitsPlainStrings(t *testing.T) {
	var cells [][]byte
	for i := range 20000 {
		n := i
		if i < 4000 {
			n = i % 7
		}
		cells = append(cells, fmt.Appendf(nil, "%08x", uint32(n*2654435761)))
	}
	src := writeAll(t, WriterOptions{Type: schema.Binary, Encoding: schema.Dictionary, BlockBytes: 16 << 10,
		StringBytes: 1 << 10, PositionalIndex: true},
		vectorOf(schema.Binary, cells))
	all, _ := listed(t, src)
	plain := 0
	for i, c := range all {
		switch {
		case c.Kind == DictionaryCblock && c.Payload < 16<<10:
			t.Errorf("dictionary of %d bytes", c.Payload)
		case c.Kind == DataCblock && i == 0 && c.Rows < 4000:
			t.Errorf("first cblock has %d codes", c.Rows)
		case c.Kind == DataCblock && c.Encoding == schema.Plain:
			if plain++; c.Payload > 1200 {
				t.Errorf("cblock of %d bytes of strings", c.Payload)
			}
		}
	}
	if plain < 100 {
		t.Errorf("%d cblocks of strings", plain)
	}
}

func TestCblocksOfArraysAndOfRawFiles(t *testing.T) {
	all, _ := listed(t, writeAll(t, exampleArrayOptions, arraysOf(schema.Int32, exampleArrays())))
	must.Equal(t, len(all), 2, all)
	must.Equal(t, all[0].Rows, len(exampleArrays()), all)
	var raw block.Memory
	w := must.Get(NewRawWriter(&raw, WriterOptions{}))(t)
	must.Do(t, w.AppendBlock([][]byte{[]byte("anything")}, []byte("k"), nil))
	must.Do(t, w.Finish())
	all, _ = listed(t, &raw)
	if len(all) != 2 || all[0].Rows != 0 || all[0].Payload != 8 || all[1].Kind != ValueIndexCblock {
		t.Errorf("%+v", all)
	}
}

// Incompressible data is stored raw and reported as such.
func TestCblocksReportIncompressibleData(t *testing.T) {
	v := batch.NewVector(schema.Int64, 64)
	for i, x := 0, uint64(1); i < 64; i, x = i+1, x*6364136223846793005+1442695040888963407 {
		batch.Values[int64](v)[i] = int64(x)
	}
	o := WriterOptions{Type: schema.Int64, Encoding: schema.Plain, Compression: schema.LZ4, PositionalIndex: true}
	if all, _ := listed(t, writeAll(t, o, v)); !all[0].KeptRaw || all[0].Payload != 8+64*8 {
		t.Errorf("%+v", all[0])
	}
	clear(v.Data)
	if all, _ := listed(t, writeAll(t, o, v)); all[0].KeptRaw || all[0].Payload != 8+64*8 || all[0].Pointer.Size > 100 {
		t.Errorf("%+v", all[0])
	}
}

func TestCblocksReturnsDamageAndCallerErrors(t *testing.T) {
	src := writeAll(t, WriterOptions{Type: schema.Int32, PositionalIndex: true}, batch.NewVector(schema.Int32, 100))
	all, r := listed(t, src)
	stop := errors.New("stop")
	if err := r.Cblocks(func(Cblock) error { return stop }); err != stop {
		t.Errorf("got %v", err)
	}
	src.Bytes[all[0].Pointer.Offset+4] ^= 1
	must.Fail(t, r.Cblocks(func(Cblock) error { return nil }), fault.ErrCorrupt)
}
