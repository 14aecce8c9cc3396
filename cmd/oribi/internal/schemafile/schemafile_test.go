package schemafile

import (
	"fmt"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

const every = `{"name":"t","id":"00112233445566778899aabbccddeeff","schema_version":3,"history":"7d","history_floor":12,"comment":"all \"types\"","columns":[` +
	`{"id":10,"name":"k","type":"int8","key":true,"nullable":false,"encoding":"auto","compression":"default","block_size":0},` +
	`{"id":11,"name":"d","type":"date","key":true,"nullable":false,"encoding":"bitshuffle","compression":"none","block_size":4096},` +
	`{"id":12,"name":"auto_incrementing_id","type":"int64","key":true,"nullable":false,"auto_incrementing":true,"encoding":"auto","compression":"default","block_size":0},` +
	`{"id":14,"name":"b","type":"bool","key":false,"nullable":true,"immutable":true,"default":true,"encoding":"rle","compression":"zlib","block_size":0},` +
	`{"id":15,"name":"m","type":"decimal(15,2)","key":false,"nullable":true,"default":"1.50","encoding":"plain","compression":"lz4","block_size":0,"comment":"money"},` +
	`{"id":16,"name":"v","type":"varchar(20)","key":false,"nullable":false,"default":"","encoding":"prefix","compression":"snappy","block_size":0},` +
	`{"id":17,"name":"s","type":"string","key":false,"nullable":false,"encoding":"dict","compression":"default","block_size":0},` +
	`{"id":18,"name":"x","type":"binary","key":false,"nullable":true,"default":"0xab","encoding":"auto","compression":"default","block_size":0}]}`

func TestSchemaFileRoundTrip(t *testing.T) {
	read := must.Get(Read([]byte(every)))(t)
	// These fields are not read: the store assigns them.
	read.Name, read.ID, read.SchemaVersion, read.HistoryFloor = "t", "00112233445566778899aabbccddeeff", 3, 12
	for i, id := range []schema.ColumnID{10, 11, 12, 14, 15, 16, 17, 18} {
		must.Equal(t, read.Columns[i].ID, schema.ColumnID(i), i)
		read.Columns[i].ID = id
	}
	got, want := string(Append(nil, read)), every
	must.Equal(t, got, want)
}

func TestReadRefusesInvalidSchemas(t *testing.T) {
	key := `{"name":"k","type":"int8","key":true}`
	for _, c := range []struct{ in, want string }{
		{``, "no value"},
		{`[]`, "want an object with columns, not an array"},
		{`{}`, "columns"},
		{`{"columns":[]}`, "1 to 300 columns"},
		{`{"columns":{}}`, "columns: want an array"},
		{`{"columns":[1]}`, "column 1: want an object"},
		{`{"columns":[{"type":"int8","key":true}]}`, "column 1: name is missing"},
		{`{"columns":[{"name":"k","key":true}]}`, `column "k": type is missing`},
		{`{"columns":[{"name":"k","type":"int9","key":true}]}`, `column "k": type: unknown type "int9"`},
		{`{"columns":[{"name":"k","type":"uint7","key":true}]}`, "unknown type"},
		{`{"columns":[{"name":"k","type":"int8"}]}`, "at least one key column"},
		{`{"columns":[{"name":"v","type":"int8"},` + key + `]}`, `column "k": key columns come first`},
		{`{"columns":[` + key + `,` + key + `]}`, "appears twice"},
		{`{"columns":[{"name":"k","type":"int8","key":true,"nullable":true}]}`, "cannot be nullable"},
		{`{"columns":[{"name":"k","type":"double","key":true}]}`, "cannot be in a key"},
		{`{"columns":[{"name":"k","type":"bool","key":true}]}`, "cannot be in a key"},
		{`{"columns":[{"name":"k","type":"int64","key":true,"auto_incrementing":true}]}`, "auto_incrementing_id"},
		{`{"columns":[` + key + `],"extra":1}`, `unknown field "extra"`},
		{`{"columns":[{"name":"k","type":"int8","key":true,"size":1}]}`, `column "k": unknown field "size"`},
		{`{"columns":[` + key + `,{"name":"v","type":"int8","default":300}]}`,
			`column "v": default: "300" is out of range`},
		{`{"columns":[` + key + `,{"name":"v","type":"int8","encoding":"dict"}]}`, "does not fit"},
		{`{"columns":[` + key + `,{"name":"v","type":"int8","encoding":"best"}]}`, `unknown encoding "best"`},
		{`{"columns":[` + key + `,{"name":"v","type":"int8","compression":1}]}`, "compression: want a string"},
		{`{"columns":[` + key + `,{"name":"v","type":"int8","block_size":1.5}]}`, "block_size: want a whole number"},
		{`{"columns":[` + key + `,{"name":"v","type":"int8","nullable":"yes"}]}`, "nullable: want true or false"},
		{`{"columns":[` + key + `,{"name":"v","type":"int8","default":null}]}`,
			"default: null needs a nullable column"},
		{`{"columns":[` + key + `],"history":"soon"}`, `history: "soon" is not an age`},
		{`{"columns":[` + key + `],"history":7}`, "history: want a string"},
		{`{"columns":[` + key + `],"columns":[]}`, `the name "columns" appears twice`},
		{`{"columns":[` + key + `]} {}`, "text after the value"},
	} {
		must.Contain(t, fmt.Sprint(must.Err(Read([]byte(c.in)))), c.want, c.in)
	}
}

// The rule by which rows expire is read as it was written, in a schema file and as an argument.
func TestExpiresRoundTrip(t *testing.T) {
	const columns = `,"columns":[{"name":"k","type":"string","key":true},{"name":"a:1h","type":"timestamp"},{"name":"n","type":"int64"}]}`
	for _, e := range []Expires{{}, {Column: "a:1h"}, {Column: "a:1h", Age: 7 * 24 * time.Hour},
		{Column: "a:1h", Age: 1500 * time.Millisecond}} {
		table := must.Get(Read([]byte(`{"history":"7d"` + columns)))(t)
		table.Expires = e
		must.Equal(t, e, must.Get(Read(Append(nil, table)))(t).Expires)
		must.Equal(t, must.Get(ParseExpires(e.String(), func(c string) bool { return c == "a:1h" }))(t), e)
	}
	for _, bad := range []string{`7`, `{}`, `{"column":"x"}`, `{"column":"n"}`, `{"column":"a:1h","age":"-1s"}`,
		`{"column":"a:1h","age":"forever"}`, `{"column":"a:1h","ago":"1s"}`} {
		if table, err := Read([]byte(`{"expires":` + bad + columns)); err == nil {
			t.Errorf("%s is read as %+v", bad, table.Expires)
		}
	}
}
