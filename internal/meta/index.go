package meta

import (
	"encoding/binary"
	"strings"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// MaxIndexes is the maximum number of indexes of a table, and MaxIndexColumns that of columns of an index.
const (
	MaxIndexes      = 16
	MaxIndexColumns = 16
)

// Index says of which table another table has the index entries.
type Index struct {
	Of      uint32 // number of the table that is indexed
	Name    string
	Columns []schema.ColumnID // of the table that is indexed
	Unique  bool

	Building bool           // rows of the table may have no entry yet
	Since    mvcc.Timestamp // as of which, and from then on, each row has an entry
}

// IndexTableName returns the name of the table with the entries of an index. No other table can have it:
// it contains a NUL.
func IndexTableName(of uint32, index string) string {
	return string(binary.BigEndian.AppendUint32([]byte(index+"\x00"), of))
}

func (x *Index) message() *kudupb.IndexRow {
	if x == nil {
		return nil
	}
	m := &kudupb.IndexRow{Of: x.Of, Name: x.Name, Unique: x.Unique, Building: x.Building, Since: uint64(x.Since)}
	for _, id := range x.Columns {
		m.Columns = append(m.Columns, int32(id))
	}
	return m
}

// indexOf returns the index in a message of the table with a number and a name. Errors: ErrCorrupt.
func indexOf(number uint32, name string, m *kudupb.IndexRow) (*Index, error) {
	x := &Index{Of: m.Of, Name: m.Name, Unique: m.Unique, Building: m.Building, Since: mvcc.Timestamp(m.Since)}
	for _, id := range m.Columns {
		x.Columns = append(x.Columns, schema.ColumnID(id))
	}
	switch err := schema.CheckName(x.Name); {
	case err != nil:
		return nil, fault.Corruptf("metadata: table %d: index: %v", number, err)
	case len(x.Columns) == 0 || len(x.Columns) > MaxIndexColumns:
		return nil, fault.Corruptf("metadata: table %d: index of %d columns", number, len(x.Columns))
	case x.Of == number || name != IndexTableName(x.Of, x.Name):
		return nil, fault.Corruptf("metadata: table %d: name %.40q of index %q of table %d", number, name, x.Name, x.Of)
	}
	return x, nil
}

// DisplayName returns the name of a table with entries of an index without what makes it unique.
func DisplayName(table string) string {
	name, _, _ := strings.Cut(table, "\x00")
	return name
}
