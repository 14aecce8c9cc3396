package history

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/schema"
)

// ages are those after which rows expire, and how long before and after the present time rows do.
var ages = []time.Duration{0, time.Microsecond, time.Second, time.Minute, 20 * time.Minute, 4 * time.Hour}

func (g *Generator) age() time.Duration { return ages[g.r.IntN(len(ages))] }

// expire makes the rows of a new table expire by one of its columns, which becomes a timestamp.
func (g *Generator) expire(st *script.Step) {
	columns, keys := slices.Clone(st.Schema.Columns), st.Schema.Keys
	if len(columns) == keys || st.Schema.AutoIncrement() >= 0 {
		return // of a row that was never visible, only the next value would show whether it survived a crash
	}
	i := keys + g.r.IntN(len(columns)-keys)
	c := &columns[i]
	*c = schema.Column{ID: c.ID, Name: c.Name, Type: schema.Timestamp, Nullable: c.Nullable, Immutable: c.Immutable}
	values.RandomAttributes(g.r, c)
	s, err := schema.New(columns, keys)
	if err != nil {
		panic(err) // the generator is wrong
	}
	st.Schema, st.Expires, st.Time = s, i+1, g.age()
}

// expiryOf returns an alteration of the rule by which rows expire.
func (g *Generator) expiryOf(columns []schema.Column) script.Alteration {
	a := script.Alteration{What: script.Expires}
	if slices.ContainsFunc(columns, func(c schema.Column) bool { return c.AutoIncrement }) {
		return a // see expire
	}
	for i := range columns {
		if columns[i].Type == schema.Timestamp && g.r.IntN(2) == 0 {
			a.Column, a.Age = i+1, g.age()
		}
	}
	return a
}

// cell returns a value of a column. Rows expire near the present time.
func (g *Generator) cell(t *model.Table, i int) []byte {
	if i != t.Expires() || g.r.IntN(6) == 0 {
		return values.RandomCell(g.r, &t.Schema.Columns[i])
	}
	at := t.Now().Add(g.age() - g.age())
	return binary.LittleEndian.AppendUint64(nil, uint64(at.UnixMicro()))
}
