package meta

import (
	"errors"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// Kudu's message of the schema names a codec of Kudu; the compressions that only this engine has
// are next to it. Without them, as in metadata that an older version wrote, the columns have the
// codec.
func TestCompressionsThatKuduDoesNotHave(t *testing.T) {
	table := exampleTable(t)
	columns := slices.Clone(table.Schema.Columns)
	columns[0].Compression, columns[3].Compression = schema.LZ4HC, schema.Dense
	s := must.Get(schema.New(columns, table.Schema.Keys))(t)
	table.Schema = s
	row := table.Encode()
	must.Equal(t, must.Get(DecodeTable(row))(t), table)
	var m kudupb.TableRow
	must.Do(t, kudupb.DecodeRow("table", row, &m))
	must.Equal(t, m.Schema.Columns[0].GetCompression(), int32(schema.LZ4), "Kudu's message")
	must.Equal(t, m.Schema.Columns[3].GetCompression(), int32(schema.Zlib))
	for _, test := range []struct {
		name  string
		forms []*kudupb.ColumnForm
		want  schema.Compression // of the first column
		err   error
	}{
		{"none", nil, schema.LZ4, nil},
		{"of a newer version", []*kudupb.ColumnForm{{Column: 10, Compression: 66}}, schema.LZ4, nil},
		{"unknown column", []*kudupb.ColumnForm{{Column: 99, Compression: 64}}, 0, fault.ErrCorrupt},
		{"another codec", []*kudupb.ColumnForm{{Column: 10, Compression: 65}}, 0, fault.ErrCorrupt},
		{"twice", []*kudupb.ColumnForm{{Column: 10, Compression: 64}, {Column: 10, Compression: 64}}, 0,
			fault.ErrCorrupt},
	} {
		c := proto.CloneOf(&m)
		c.Forms = test.forms
		got, err := DecodeTable(kudupb.EncodeRow(c))
		if !errors.Is(err, test.err) || err == nil && got.Schema.Columns[0].Compression != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
