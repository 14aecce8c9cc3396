package oribi

import (
	"errors"
	"fmt"
	"math"
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

	// Since is the timestamp from which on this is so. As of earlier ones, rows expire as they did
	// then.
	Since mvcc.Timestamp
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
	return TableOption{apply: func(t *meta.Table) error {
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
// states do not change. If rows expire by another column or age so far, those that have expired
// stay absent: the alteration deletes them first.
func SetExpires(column string, age time.Duration) Alteration {
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

// ClearExpires makes rows not expire any more. Those that have expired stay absent: the alteration
// deletes them first.
func ClearExpires() Alteration { return func(d *draft) error { return d.setRule(nil) } }

// setRule makes a rule begin with the alteration. With a nil rule, rows do not expire.
func (d *draft) setRule(rule *expiry.Rule) error {
	rules := d.row.Expiry
	if n := len(rules); n > 0 && rules[n-1].From == mvcc.Max { // of an earlier change
		rules = rules[:n-1]
	}
	now, ok := rules.Current()
	if ok != (rule != nil) || ok && now != *rule {
		rules = rules.After(mvcc.Max, rule)
	}
	d.row.Expiry = rules
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
	var e Expiry
	if n := len(row.Expiry); n > 0 {
		e.Since = row.Expiry[n-1].From
	}
	if rule, ok := row.Expiry.Current(); ok {
		e.Column = row.Schema.Columns[row.Schema.IndexID(rule.Column)].Name
		e.Age = time.Duration(min(rule.Age, math.MaxInt64/1000)) * time.Microsecond
	}
	return e
}

// expiredAt reports whether a row is expired as of ts, given cells of columns.
func (t *Table) expiredAt(ts mvcc.Timestamp, columns []schema.Column, cells [][]byte) bool {
	test, ok := t.tab.Schema().Expiry.At(ts)
	i := slices.IndexFunc(columns, func(c schema.Column) bool { return c.ID == test.Column })
	return ok && i >= 0 && test.Expired(cells[i])
}

// Now returns the present time by the store's clock, by which rows expire. Errors: the error of the
// clock.
func (s *Store) Now() (time.Time, error) {
	now, err := s.core.Clock.Now()
	if err != nil {
		return time.Time{}, callErr("", err)
	}
	return now.Time(), nil
}
