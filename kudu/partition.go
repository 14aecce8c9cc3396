package kudu

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kudurow"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// Partitioning is how a table's rows are divided among its tablets: by hashes of columns, and by
// ranges of the values of columns. Some ranges may have other hashes.
type Partitioning struct {
	Hash   []HashLevel   `json:"hash"`
	Range  []string      `json:"range"`         // names of columns; empty if not by range
	Custom []CustomRange `json:"custom_ranges"` // the ranges with hashes of their own
}

// CustomRange is a range whose rows are divided by hashes of its own, not by the table's hashes.
type CustomRange struct {
	// From and To are its bounds, encoded as in Partition.
	From json.RawMessage `json:"from"`
	To   json.RawMessage `json:"to"`
	Hash []HashLevel     `json:"hash"`
}

// HashLevel divides rows by a hash of some columns.
type HashLevel struct {
	Columns []string `json:"columns"`
	Buckets int32    `json:"buckets"`
	Seed    uint32   `json:"seed"`
}

// Partition is the part of a table's rows that a tablet has.
type Partition struct {
	Buckets []int32 `json:"buckets"` // one for each hash level of its range
	// From and To are the bounds of its range, inclusive and exclusive: an object with the columns
	// of the range, or, if they cannot be decoded, a string of hex digits. null is no bound.
	From json.RawMessage `json:"from"`
	To   json.RawMessage `json:"to"`
}

func partitioning(m *kudupb.PartitionSchemaPB, s *schema.Schema) Partitioning {
	p := Partitioning{Range: []string{}, Custom: []CustomRange{}}
	names := func(columns []*kudupb.PartitionSchemaPB_ColumnIdentifierPB) []string {
		out := []string{}
		for _, i := range identified(columns, s) {
			out = append(out, s.Columns[i].Name)
		}
		return out
	}
	levels := func(hashes []*kudupb.PartitionSchemaPB_HashBucketSchemaPB) []HashLevel {
		out := []HashLevel{}
		for _, h := range hashes {
			out = append(out, HashLevel{Columns: names(h.Columns), Buckets: h.GetNumBuckets(), Seed: h.GetSeed()})
		}
		return out
	}
	p.Hash = levels(m.GetHashSchema())
	p.Range = append(p.Range, names(m.GetRangeSchema().GetColumns())...)
	cols := identified(m.GetRangeSchema().GetColumns(), s)
	for _, r := range m.GetCustomHashSchemaRanges() {
		from, to := customBounds(r.RangeBounds, cols, s)
		p.Custom = append(p.Custom, CustomRange{From: from, To: to, Hash: levels(r.HashSchema)})
	}
	return p
}

// customBounds returns the bounds of a range as JSON; both are the bytes in hex if they cannot be
// decoded.
func customBounds(message []byte, cols []int, s *schema.Schema) (from, to json.RawMessage) {
	lower, upper, err := kuduwal.RangeBounds(message, s)
	if err != nil {
		raw := json.RawMessage(`"` + hex.EncodeToString(message) + `"`)
		return raw, raw
	}
	object := func(cells [][]byte) json.RawMessage {
		var columns []schema.Column
		var set [][]byte
		for _, c := range cols {
			if cells != nil && cells[c] != nil { // without a value, it is the least one
				columns, set = append(columns, s.Columns[c]), append(set, cells[c])
			}
		}
		if len(set) == 0 {
			return json.RawMessage("null")
		}
		return celltext.AppendObject(nil, columns, set)
	}
	return object(lower), object(upper)
}

// identified returns the indexes in the schema of columns. Those that the schema does not have are
// left out.
func identified(columns []*kudupb.PartitionSchemaPB_ColumnIdentifierPB, s *schema.Schema) []int {
	return slices.DeleteFunc(kudurow.Identified(columns, s), func(i int) bool { return i < 0 })
}

func partition(m *kudupb.TabletSuperBlockPB, s *schema.Schema) Partition {
	p := Partition{Buckets: append([]int32{}, m.Partition.HashBuckets...), From: json.RawMessage("null"),
		To: json.RawMessage("null")}
	cols := identified(m.GetPartitionSchema().GetRangeSchema().GetColumns(), s)
	if len(cols) == 0 || len(cols) != len(m.GetPartitionSchema().GetRangeSchema().GetColumns()) {
		return p
	}
	skip := kudurow.BucketBytes * len(p.Buckets)
	bound := func(key []byte) json.RawMessage {
		if len(key) <= skip {
			return json.RawMessage("null")
		}
		return rangeBound(key[skip:], cols, s)
	}
	p.From = bound(m.Partition.PartitionKeyStart)
	// The end of the last range of a bucket is the beginning of the next bucket.
	if end := m.Partition.PartitionKeyEnd; bytes.HasPrefix(end, kudurow.BucketPrefix(p.Buckets)) {
		p.To = bound(end)
	}
	return p
}

// rangeBound returns encoded columns of a range as JSON.
func rangeBound(key []byte, cols []int, s *schema.Schema) json.RawMessage {
	columns := make([]schema.Column, len(cols))
	for i, c := range cols {
		columns[i] = s.Columns[c]
		columns[i].AutoIncrement = false // it need not be the last one here
	}
	if keys, err := schema.New(columns, len(columns)); err == nil {
		if cells, err := keyenc.NewEncoder(keys).Decode(key); err == nil {
			return celltext.AppendObject(nil, columns, cells)
		}
	}
	return json.RawMessage(`"` + hex.EncodeToString(key) + `"`)
}
