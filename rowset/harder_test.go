package rowset

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// oneColumn writes a rowset with a column of cells besides the key, as a flush does.
func oneColumn(t *testing.T, c schema.Column, cells [][]byte) *DiskRowSet {
	t.Helper()
	c.ID, c.Name = 2, "c"
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64}, c}, 1)
	rows := &change.Rows{Batch: batch.New(s.Columns, len(cells))}
	for i, cell := range cells {
		rows.Batch.Columns[0].SetCell(i, binary.LittleEndian.AppendUint64(nil, uint64(i)))
		rows.Batch.Columns[1].SetCell(i, cell)
		rows.Keys = append(rows.Keys, binary.BigEndian.AppendUint64(nil, uint64(i)|1<<63))
	}
	d := newDisk()
	w := must.Get(NewWriter(d, s, 1))(t)
	must.Do(t, w.Append(rows))
	row := must.Get(w.Finish())(t)
	return must.Get(Open(s, row, Options{Blocks: d}))(t)
}

// sizeIn returns the size of a file of cells.
func sizeIn(t *testing.T, o cfile.WriterOptions, cells [][]byte) int64 {
	t.Helper()
	var file block.Memory
	v := batch.NewVector(o.Type, len(cells))
	for i, cell := range cells {
		v.SetCell(i, cell)
	}
	w := must.Get(cfile.NewWriter(&file, o))(t)
	must.Do(t, w.Append(v))
	must.Do(t, w.Finish())
	return file.Size()
}

// At rest, hashes take no more than 3 % more than in plain encoding without compression, in which
// each has an offset of up to three bytes and a quarter.
func TestHashesAtRestAreNotLargerThanPlain(t *testing.T) {
	rng := rand.New(rand.NewPCG(seedtest.Seed(t), 1))
	for _, bytes := range []int{16, 32} {
		for _, asHex := range []bool{false, true} {
			for _, n := range []int{100, 3000, 20000} {
				cells := make([][]byte, n)
				for i := range cells {
					for range bytes / 8 {
						cells[i] = binary.LittleEndian.AppendUint64(cells[i], rng.Uint64())
					}
					if asHex {
						cells[i] = hex.AppendEncode(nil, cells[i])
					}
				}
				set := oneColumn(t, schema.Column{Type: schema.Binary}, cells)
				o, worth := must.Get2(set.Smallest(1))(t)
				if !worth {
					o = columnOptions(set.Schema, 1, nil)
				}
				plain := columnOptions(set.Schema, 1, nil)
				plain.Encoding, plain.Compression = schema.Plain, schema.NoCompression
				if got, want := sizeIn(t, o, cells), sizeIn(t, plain, cells); got > want*103/100+64 {
					t.Errorf("%d hashes of %d bytes, hex %t: %d bytes, %d in plain encoding", n, bytes,
						asHex, got, want)
				}
				set.Unref()
			}
		}
	}
}

// The form has the schema's compression, and the encoding that is smallest for the column.
func TestSmallestForm(t *testing.T) {
	const n = 6000
	text := func(i int) []byte {
		return fmt.Append(nil, "the ", i*7919%1009, " quick foxes jump over ", i*i%9973, " dogs")
	}
	small := func(i int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(i%7)) }
	rng := rand.New(rand.NewPCG(seedtest.Seed(t), 2))
	random := func(int) []byte { return binary.LittleEndian.AppendUint32(nil, rng.Uint32()) }
	word := func(int) []byte { return fmt.Append(nil, "word ", bits.TrailingZeros32(rng.Uint32())) }
	for _, test := range []struct {
		name   string
		column schema.Column
		cell   func(i int) []byte
		worth  bool
		want   schema.Encoding
	}{
		{"text", schema.Column{Type: schema.String}, text, true, schema.Dictionary},
		{"dense text", schema.Column{Type: schema.String, Compression: schema.Dense}, text, true, schema.Prefix},
		{"dense text in an encoding by name", schema.Column{Type: schema.String, Compression: schema.Dense,
			Encoding: schema.Plain}, text, true, schema.Plain},
		{"dense words", schema.Column{Type: schema.String, Compression: schema.Dense}, word, true, schema.Dictionary},
		{"dense small numbers", schema.Column{Type: schema.Int32, Compression: schema.Dense}, small,
			true, schema.Plain},
		{"dense random numbers", schema.Column{Type: schema.Int32, Compression: schema.Dense}, random, false, 0},
	} {
		cells := make([][]byte, n)
		for i := range cells {
			cells[i] = test.cell(i)
		}
		set := oneColumn(t, test.column, cells)
		o, worth, err := set.Smallest(1)
		if err != nil || worth != test.worth ||
			worth && (o.Encoding != test.want || o.Compression != test.column.Compression.Harder(test.column.Type)) {
			t.Errorf("%s: %v, %v, %t, %v", test.name, o.Encoding, o.Compression, worth, err)
		}
		if now, then := sizeIn(t, columnOptions(set.Schema, 1, nil), cells), sizeIn(t, o, cells); worth && then >= now {
			t.Errorf("%s: %d bytes, %d before", test.name, then, now)
		}
		set.Unref()
	}
}

// The sample has rows of all parts of the rowset, however long they are, and about 1 MiB.
func TestSampleIsSpread(t *testing.T) {
	for _, test := range []struct{ n, length int }{{100_000, 60}, {3000, 4000}, {5000, 30}} {
		cells := make([][]byte, test.n)
		for i := range cells {
			cells[i] = fmt.Appendf(nil, "%0*d", test.length, i)
		}
		set := oneColumn(t, schema.Column{Type: schema.String}, cells)
		f := must.Get(set.File(1))(t)
		sample := must.Get(set.sample(1, f))(t)
		last, bytes := 0, int64(0)
		for _, v := range sample {
			bytes += vectorBytes(v)
			must.Get(fmt.Sscanf(string(v.Cell(v.Len-1)), "%d", &last))(t)
		}
		first := vectorBytes(sample[0]) // of as many rows as their stored size suggests
		if all := int64(test.n * test.length); last < test.n*3/4 || bytes-first > sampleBytes ||
			bytes < min(all, sampleBytes)/4 {
			t.Errorf("%+v: %d bytes, %d of them at first, up to row %d", test, bytes, first, last)
		}
		set.Unref()
	}
}

// The cblocks of many columns at rest have 16 MiB together.
func TestManyColumnsAtRest(t *testing.T) {
	for _, test := range []struct {
		columns int
		k       schema.Compression
		want    int
	}{{2, schema.LZ4HC, 64 << 10}, {2, schema.Dense, 256 << 10}, {300, schema.LZ4HC, 16 << 20 / 300},
		{300, schema.Dense, 16 << 20 / 300}} {
		columns := []schema.Column{{ID: 1, Name: "k", Type: schema.Int64}}
		for i := 1; i < test.columns; i++ {
			columns = append(columns,
				schema.Column{ID: schema.ColumnID(i + 1), Name: fmt.Sprint("c", i), Type: schema.String})
		}
		s := mustSchema(columns, 1)
		for _, o := range harderOptions(s, 1, test.k) {
			must.Equal(t, o.StringBytes, test.want, test, "bytes")
		}
	}
}
