package handover

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudufs"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kuduschema"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/schema"
)

// checkTarget reads the superblock and the log of the tablet and checks that it is empty and has
// the columns of the table.
func (in *installation) checkTarget() error {
	ids, _, err := in.d.Tablets()
	if err != nil {
		return err
	}
	if !slices.Contains(ids, in.tablet) {
		return fault.ErrNotFound
	}
	if in.super, err = in.d.Superblock(in.tablet); err != nil {
		return err
	}
	if state := kudupb.TabletDataState(
		in.super.GetTabletDataState()); state != kudupb.TabletDataState_TABLET_DATA_READY {
		return fmt.Errorf("it is not a complete tablet: its state is %s", kudupb.TabletDataState_name[int32(state)])
	}
	if n := len(in.super.Rowsets); n > 0 {
		return fmt.Errorf("it has rows: %d rowsets", n)
	}
	c, err := in.d.Consensus(in.tablet)
	if err != nil {
		return err
	}
	in.voters = kudufs.Voters(c)
	if err := in.checkLog(); err != nil {
		return err
	}
	to, err := kuduschema.FromMessage(in.super.Schema)
	if err != nil {
		return err
	}
	return in.compare(to)
}

// checkLog checks that the log of the tablet has no writes. A server that ended while it read its
// log has two copies.
func (in *installation) checkLog() error {
	dir, recovery := in.d.LogDirs(in.tablet)
	segments := 0
	errWrite := errors.New("it has rows: its log has writes")
	apply := func(op *kuduwal.Operation) error {
		switch kudupb.OperationType(op.Msg.GetOpType()) {
		case kudupb.OperationType_NO_OP, kudupb.OperationType_CHANGE_CONFIG_OP, kudupb.OperationType_ALTER_SCHEMA_OP:
			return in.ctx.Err()
		}
		return errWrite
	}
	for _, dir := range [2]string{dir, recovery} {
		sum, err := kuduwal.Replay(in.d.FS(), dir, kuduwal.Handler{
			Tablet: in.tablet,
			Begin:  func(*kudupb.LogSegmentHeaderPB) error { return nil },
			Apply:  apply,
			Orphan: func(*kudupb.CommitMsg) error { return errWrite },
		})
		if errors.Is(err, errWrite) {
			return errWrite
		}
		if err != nil {
			return err
		}
		for _, op := range sum.Pending {
			if err := apply(op); err != nil {
				return err
			}
		}
		segments += sum.Segments
		for _, f := range sum.Findings {
			in.options.Warn(fmt.Sprintf("tablet %s: %v", in.tablet, f))
		}
	}
	if segments == 0 {
		return errors.New("it has no log")
	}
	return nil
}

// compare checks that the tablet has the columns of the table, in any order after the key, and
// notes their IDs. Encodings, compressions, comments, and defaults of inserts may differ.
func (in *installation) compare(to *schema.Schema) error {
	in.ids, in.defaults = map[schema.ColumnID]schema.ColumnID{}, map[schema.ColumnID]bool{}
	s := in.schema
	if s.Keys != to.Keys {
		return fmt.Errorf("another schema: the key has %d columns, the table's key %d", to.Keys, s.Keys)
	}
	for i := range to.Columns {
		if name := to.Columns[i].Name; s.Index(name) < 0 {
			return fmt.Errorf("another schema: the table has no column %q", name)
		}
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		at := to.Index(c.Name)
		if at < 0 {
			return fmt.Errorf("another schema: no column %q", c.Name)
		}
		other := &to.Columns[at]
		switch {
		case (i < s.Keys || at < to.Keys) && i != at:
			return fmt.Errorf("another schema: column %q is column %d, in the table %d", c.Name, at, i)
		case c.Type != other.Type || c.Precision != other.Precision || c.Scale != other.Scale ||
			c.Length != other.Length:
			return fmt.Errorf("another schema: the type of column %q", c.Name)
		case c.Nullable != other.Nullable:
			return fmt.Errorf("another schema: column %q is NOT NULL in one of both", c.Name)
		case c.AutoIncrement != other.AutoIncrement, c.Immutable != other.Immutable:
			return fmt.Errorf("another schema: column %q is immutable or auto-incrementing in one of both", c.Name)
		}
		in.ids[c.ID] = other.ID
		if (c.ReadDefault == nil) != (other.ReadDefault == nil) || !bytes.Equal(c.ReadDefault, other.ReadDefault) {
			in.defaults[c.ID] = true
		}
	}
	return nil
}
