package peer

import (
	"testing"

	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/internal/must"
)

// Each query has the same answer from Table.Aggregate and from a scan.
func TestAggregatesMatchScans(t *testing.T) {
	l := must.Get(openOribi(t.TempDir()))(t)
	defer l.Close()
	name := t.TempDir() + "/lineitem"
	must.Do(t, inputs.WriteLineitem(name, "", 0))
	must.Do(t, l.Load(inputs.Items(name), true))
	o := l.(*oribiLineitem)
	for _, q := range []Question{Sum, Group, Q1} {
		a := must.Get(o.Query(q))(t)
		b := must.Get(o.scanned(q))(t)
		if a.String() != b.String() || a.String() == "no rows" {
			t.Errorf("%s: %s, by a scan %s", q, a, b)
		}
	}
}
