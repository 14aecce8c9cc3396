package tablet

import (
	"encoding/hex"
	"testing"

	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// The keys of entries have the bytes that the comment on index.go's format shows.
func TestEntryBytes(t *testing.T) {
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int32}, {Name: "email", Type: schema.String,
		Nullable: true}, {Name: "v", Type: schema.Int8}}, 1))(t)
	s = must.Get(s.Created())(t)
	sc := newTableSchema(s, 0)
	id := func(column string) schema.ColumnID { return s.Columns[s.Index(column)].ID }
	key := []byte{0x80, 0, 0, 7}
	for _, c := range []struct {
		unique  bool
		columns []schema.ColumnID
		email   []byte
		want    string
	}{
		{false, []schema.ColumnID{id("email")}, []byte("a"), "0161000080000007"},
		{true, []schema.ColumnID{id("email")}, []byte("a"), "01610000"},
		{true, []schema.ColumnID{id("email")}, nil, "0080000007"},
		{false, []schema.ColumnID{id("v"), id("email")}, []byte("a\x00b"), "7d01610001" + "62000080000007"},
		{true, []schema.ColumnID{id("v"), id("email")}, []byte{}, "7d010000"},
		{true, []schema.ColumnID{id("v")}, nil, "7d"},
	} {
		index := &Tablet{}
		index.metadata.Store(&meta.Table{Index: &meta.Index{Unique: c.unique, Columns: c.columns}})
		p := newIndexPlan(sc, []*Tablet{index})
		var cells [][]byte
		for _, i := range p.watched {
			cells = append(cells, map[string][]byte{"email": c.email, "v": {0xfd}}[s.Columns[i].Name])
		}
		must.Equal(t, hex.EncodeToString(p.indexes[0].appendEntry(nil, key, cells)), c.want)
	}
}
