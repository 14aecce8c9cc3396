package kudurow

import (
	"strconv"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// keyColumns are some columns of the primary key, encoded like a key of only these.
type keyColumns struct {
	columns []int // of the schema
	types   []schema.Type
	encoder *keyenc.Encoder
}

func newKeyColumns(s *schema.Schema, columns []int) (*keyColumns, error) {
	k := &keyColumns{columns: columns}
	var of []schema.Column
	for n, i := range columns {
		if i < 0 || i >= s.Keys {
			return nil, fault.Corruptf("the partition has a column that is not in the key")
		}
		c := s.Columns[i]
		c.AutoIncrement, c.Name = false, strconv.Itoa(n) // it need not be the last one here
		k.types, of = append(k.types, c.Type), append(of, c)
	}
	keys, err := schema.New(of, len(of))
	if err != nil {
		return nil, fault.Corruptf("columns of the partition: %v", err)
	}
	k.encoder = keyenc.NewEncoder(keys)
	return k, nil
}

// Identified returns the indexes in s of columns, -1 for those that s does not have.
func Identified(columns []*kudupb.PartitionSchemaPB_ColumnIdentifierPB, s *schema.Schema) (out []int) {
	for _, c := range columns {
		if c.GetName() != "" {
			out = append(out, s.Index(c.GetName()))
		} else {
			out = append(out, s.IndexID(schema.ColumnID(c.GetId())))
		}
	}
	return out
}

// append appends the encoded columns of a row, whose first cells are the primary key.
func (k *keyColumns) append(dst []byte, key [][]byte) []byte {
	for i, c := range k.columns {
		dst = k.encoder.AppendCell(dst, i, key[c])
	}
	return dst
}

// bound returns the encoded bound of a range, of which some columns are set: those that are not
// have their least values. It is empty, for no bound, if none is.
func (k *keyColumns) bound(cells [][]byte) (key []byte) {
	set := false
	for i, c := range k.columns {
		if cells != nil && cells[c] != nil {
			set = true
			key = k.encoder.AppendCell(key, i, cells[c])
			continue
		}
		key = k.appendLeast(key, i)
	}
	if !set {
		return nil
	}
	return key
}

// appendLeast appends the least value of column i.
func (k *keyColumns) appendLeast(dst []byte, i int) []byte {
	if k.types[i].Variable() {
		return k.encoder.AppendCell(dst, i, []byte{})
	}
	return append(dst, make([]byte, k.types[i].Width())...)
}

// appendRows appends the encoded columns of each of n rows. columns are the columns of the primary key.
func (k *keyColumns) appendRows(dst [][]byte, columns []*batch.Vector, n int) [][]byte {
	of := make([]keyenc.Column, len(k.columns))
	for i, c := range k.columns {
		v := columns[c]
		of[i] = keyenc.Column{Data: v.Data, Bytes: byteStrings(v)}
	}
	return k.encoder.AppendKeys(dst, of, 0, n)
}

// byteStrings returns the cells of v, whose form may be that with a dictionary, as slices; nil if v is
// of fixed width.
func byteStrings(v *batch.Vector) [][]byte {
	if !v.Type.Variable() {
		return nil // v.Bytes may be memory of an earlier use
	}
	if v.Dict == nil {
		return v.Bytes
	}
	out := make([][]byte, v.Len)
	for i, code := range v.Codes[:v.Len] {
		if !v.IsNull(i) {
			out[i] = v.Dict.Words[code]
		}
	}
	return out
}
