package rowset

import (
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// The example of tablet spec §11.1, with bounds, which it lacks, and our fields after Kudu's.
func TestMetadataMatchesTheWorkedExample(t *testing.T) {
	r := Metadata{Columns: []ColumnBlock{{ID: 10, Block: 1}, {ID: 11, Block: 2}}, Undo: []block.ID{4}, Bloom: 3,
		MinKey: []byte{0x80}, MaxKey: []byte{0x81}, LiveRows: 2, Rows: 3, LastDurableDMS: -1, IncludedLSN: 5,
		MaxTimestamp: 6, Bytes: 7, RowFile: 8, RowFileBytes: 6,
		Births: []delta.Birth{{First: 1, Rows: 2, TS: 6}}}
	want := must.Get(hex.DecodeString(strings.Join(strings.Fields(`
		0a 4b
		  08 00 10 ff ff ff ff ff ff ff ff ff 01
		  1a 0d 12 09 09 01 00 00 00 00 00 00 00 20 0a  1a 0d 12 09 09 02 00 00 00 00 00 00 00 20 0b
		  2a 0b 12 09 09 04 00 00 00 00 00 00 00 32 09 09 03 00 00 00 00 00 00 00 42 01 80 4a 01 81 50 02
		10 05  18 03  21 06 00 00 00 00 00 00 00  28 07  30 08  38 06
		42 0d  08 01  10 02  19 06 00 00 00 00 00 00 00`), "")))(t)
	got := r.Encode()
	must.Equal(t, got, want)
	must.Equal(t, must.Get(DecodeMetadata(want))(t), &r)
}

func drawMetadata(rt *rapid.T) *Metadata {
	next := block.ID(0)
	draw := func(name string, lo, hi int) (ids []block.ID) {
		for range rapid.IntRange(lo, hi).Draw(rt, name) {
			next += block.ID(rapid.Uint32Range(1, 1<<31).Draw(rt, "gap"))
			ids = append(ids, next)
		}
		return ids
	}
	key := rapid.SliceOfN(rapid.Byte(), 0, 4)
	r := &Metadata{ID: rapid.Uint64().Draw(rt, "id"), Redo: draw("redo", 0, 3), Undo: draw("undo", 0, 3),
		Bloom:  draw("bloom", 1, 1)[0],
		MinKey: append([]byte{}, key.Draw(rt, "min")...), Rows: rapid.Int64Range(1, MaxRows).Draw(rt, "rows"),
		LastDurableDMS: rapid.Int64Range(-1, 100).Draw(rt, "dms"), IncludedLSN: lsn.LSN(rapid.Uint64().Draw(rt, "lsn")),
		MaxTimestamp: mvcc.Timestamp(rapid.Uint64().Draw(rt, "ts")), Bytes: rapid.Int64Min(0).Draw(rt, "bytes")}
	r.MaxKey = append(append([]byte{}, r.MinKey...), key.Draw(rt, "max")...)
	r.LiveRows = rapid.Int64Range(0, r.Rows).Draw(rt, "live")
	for end := int64(0); end < r.Rows && rapid.Bool().Draw(rt, "birth"); {
		first := rapid.Int64Range(end, r.Rows-1).Draw(rt, "first")
		end = rapid.Int64Range(first+1, r.Rows).Draw(rt, "end")
		r.Births = append(r.Births, delta.Birth{First: uint32(first), Rows: uint32(end - first),
			TS: mvcc.Timestamp(rapid.Uint64Range(0, uint64(r.MaxTimestamp)).Draw(rt, "born"))})
	}
	if rapid.Bool().Draw(rt, "compound key") {
		r.KeyIndex = draw("index", 1, 1)[0]
	}
	if rapid.Bool().Draw(rt, "row file") {
		r.RowFile, r.RowFileBytes = draw("rows", 1, 1)[0], rapid.Int64Range(0, r.Bytes).Draw(rt, "row file bytes")
	}
	for i, b := range draw("columns", 1, 5) {
		r.Columns = append(r.Columns, ColumnBlock{ID: schema.ColumnID(100 - i), Block: b})
	}
	return r
}

func TestMetadataRoundTrips(t *testing.T) {
	seedtest.Check(t, func(rt *rapid.T) {
		want := drawMetadata(rt)
		got := must.Get(DecodeMetadata(want.Encode()))(rt)
		if !reflect.DeepEqual(got, want) {
			rt.Fatalf("got %+v\nwant %+v", got, want)
		}
	})
}

func TestDecodeMetadataRefusesImpossibleValues(t *testing.T) {
	good := func() *Metadata {
		return &Metadata{Columns: []ColumnBlock{{ID: 1, Block: 1}, {ID: 2, Block: 2}}, Undo: []block.ID{3}, Bloom: 4,
			MinKey: []byte("a"), MaxKey: []byte("b"), LiveRows: 1, Rows: 1}
	}
	must.Get(DecodeMetadata(good().Encode()))(t)
	cases := map[string]func(r *Metadata){
		"no rows":                 func(r *Metadata) { r.Rows = 0 },
		"too many rows":           func(r *Metadata) { r.Rows = MaxRows + 1 },
		"more live than rows":     func(r *Metadata) { r.LiveRows = 2 },
		"negative live rows":      func(r *Metadata) { r.LiveRows = -1 },
		"crossed bounds":          func(r *Metadata) { r.MinKey = []byte("c") },
		"no columns":              func(r *Metadata) { r.Columns = nil },
		"column twice":            func(r *Metadata) { r.Columns[1].ID = 1 },
		"block twice":             func(r *Metadata) { r.Undo[0] = 1 },
		"no bloom":                func(r *Metadata) { r.Bloom = 0 },
		"column without block":    func(r *Metadata) { r.Columns[0].Block = 0 },
		"negative column id":      func(r *Metadata) { r.Columns[0].ID = -1 },
		"negative bytes":          func(r *Metadata) { r.Bytes = -1 },
		"birth of later rows":     func(r *Metadata) { r.Births = []delta.Birth{{First: 1, Rows: 1}} },
		"birth after all changes": func(r *Metadata) { r.Births = []delta.Birth{{Rows: 1, TS: 1}} },
		"last durable DMS of -2":  func(r *Metadata) { r.LastDurableDMS = -2 },
	}
	for name, bend := range cases {
		r := good()
		bend(r)
		must.Fail(t, must.Err(DecodeMetadata(encodeLoosely(r))), fault.ErrCorrupt, name)
	}
}

// encodeLoosely is Encode for rowsets that lack a required block.
func encodeLoosely(r *Metadata) []byte {
	b, err := proto.MarshalOptions{AllowPartial: true}.Marshal(&kudupb.RowSetRow{Data: r.message(),
		BaseRows: uint64(r.Rows), Bytes: uint64(r.Bytes), Births: birthMessages(r.Births)})
	if err != nil {
		panic(err)
	}
	return b
}
