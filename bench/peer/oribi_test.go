package peer

import (
	"testing"

	"github.com/oribi-db/oribi/bench/inputs"
)

// Each query has the same answer from Table.Aggregate and from a scan.
func TestAggregatesMatchScans(t *testing.T) {
	l, err := openOribi(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	name := t.TempDir() + "/lineitem"
	if err := inputs.WriteLineitem(name, "", 0); err != nil {
		t.Fatal(err)
	}
	if err := l.Load(inputs.Items(name), true); err != nil {
		t.Fatal(err)
	}
	o := l.(*oribiLineitem)
	for _, q := range []Question{Sum, Group, Q1} {
		a, err := o.Query(q)
		if err != nil {
			t.Fatal(err)
		}
		b, err := o.scanned(q)
		if err != nil {
			t.Fatal(err)
		}
		if a.String() != b.String() || a.String() == "no rows" {
			t.Errorf("%s: %s, by a scan %s", q, a, b)
		}
	}
}
