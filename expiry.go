package oribi

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oribi-db/oribi/internal/expiry"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Expiry says when the rows of a table expire.
type Expiry struct {
	Column string        // a timestamp column; empty: rows do not expire
	Age    time.Duration // after the time in the column
}

// Expires makes rows absent from the time in a timestamp column on, plus an age, which may be 0. A
// row with NULL in the column does not expire.
//
// It is a rule of time. A row is absent as of T if it had expired at T: for every read, and for
// writes, which decide as of their own timestamp. So an insert of the key of an expired row
// succeeds, an update is refused, and an upsert inserts a new row. A write batch of which a row
// expires while it is being committed is decided again; a transaction that has read such a row is
// refused with ErrConflict. History has a delete at the time of expiry. What is stored does not
// change then: merges drop expired rows when the table's history no longer contains them.
//
// Rows that already expired when they were written are never visible.
func Expires(column string, age time.Duration) TableOption {
	return TableOption{func(t *meta.Table) error {
		i := t.Schema.Index(column)
		if i < 0 {
			return fmt.Errorf("expiry: column %q: %w", column, t.Schema.NoColumn(column))
		}
		rule, err := ruleOf(&t.Schema.Columns[i], age)
		if err != nil {
			return err
		}
		t.Expiry = expiry.Rules(nil).After(mvcc.Min, rule)
		return nil
	}}
}

// SetExpires makes rows expire, as with the table option Expires, from the alteration on: earlier
// states do not change.
func SetExpires(column string, age time.Duration) Change {
	return func(d *draft) error {
		return d.schema.Set(column, func(c *schema.Column) error {
			rule, err := ruleOf(c, age)
			if err == nil {
				err = d.setRule(rule)
			}
			return err
		})
	}
}

// ClearExpires makes rows not expire any more. Those that have expired stay absent.
func ClearExpires() Change { return func(d *draft) error { return d.setRule(nil) } }

// keepsExpiry returns an error if rows expire by a column, or did so in the table's history.
func (d *draft) keepsExpiry(name string) error {
	return d.schema.Set(name, func(c *schema.Column) error {
		if d.row.Expiry.Names(c.ID) {
			return fmt.Errorf("rows expire by it, or did so in the table's history: %w", fault.ErrSchema)
		}
		return nil
	})
}

// setRule makes a rule begin with the alteration; nil: rows do not expire.
func (d *draft) setRule(rule *expiry.Rule) error {
	if _, ok := d.row.Expiry.Current(); ok {
		return fmt.Errorf("rows of the table expire already: %w", fault.ErrSchema)
	} else if rule == nil {
		return nil
	}
	d.row.Expiry = d.row.Expiry.After(mvcc.Max, rule)
	return nil
}

// ruleOf returns the rule for a column. Errors: ErrSchema.
func ruleOf(c *schema.Column, age time.Duration) (*expiry.Rule, error) {
	var err error
	switch {
	case c.Type != schema.Timestamp:
		err = fmt.Errorf("type %s, want timestamp", c.TypeName())
	case age < 0:
		err = errors.New("the age is negative")
	case age%time.Microsecond != 0:
		err = errors.New("the age is not a number of microseconds")
	default:
		return &expiry.Rule{Column: c.ID, Age: age.Microseconds()}, nil
	}
	return nil, fmt.Errorf("expiry: column %q: %w: %w", c.Name, err, fault.ErrSchema)
}

// expiryOf returns the rule of a table for users.
func expiryOf(row *meta.Table) Expiry {
	rule, ok := row.Expiry.Current()
	if !ok {
		return Expiry{}
	}
	return Expiry{row.Schema.Columns[row.Schema.IndexID(rule.Column)].Name, time.Duration(rule.Age) * time.Microsecond}
}

// expiredAt reports whether a row is expired as of ts, given cells of columns.
func (t *Table) expiredAt(ts mvcc.Timestamp, columns []schema.Column, cells [][]byte) bool {
	test, ok := t.tab.Schema().Expiry.At(ts)
	i := slices.IndexFunc(columns, func(c schema.Column) bool { return c.ID == test.Column })
	return ok && i >= 0 && test.Expired(cells[i])
}

// expires reports whether rows of the table may expire.
func (t *Table) expires() bool { return len(t.tab.Schema().Expiry) > 0 }

// newest returns the timestamp at which reads of the newest state see the table: if its rows expire,
// they do so as time passes, also while nothing is written.
func (t *Table) newest() mvcc.Timestamp {
	if t.expires() {
		return t.store.present()
	}
	return t.store.pub.Visible()
}

// newest returns the timestamp of the newest state of all tables.
func (s *Store) newest() mvcc.Timestamp {
	for _, t := range s.sortedTables() {
		if t.expires() {
			return s.present()
		}
	}
	return s.pub.Visible()
}

// present returns the highest timestamp at which the store can be read without waiting for write
// batches in flight: if there are none, the present time, which later ones are above.
func (s *Store) present() mvcc.Timestamp {
	s.appendMu.Lock() // no write batch is between its timestamp and the publisher
	defer s.appendMu.Unlock()
	ts, pending := s.pub.Complete()
	if pending {
		return ts
	}
	if now, err := s.clock.Now(); err == nil {
		return now
	}
	return ts
}
