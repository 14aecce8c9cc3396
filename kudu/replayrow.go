package kudu

import (
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kuduwal"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// target is a store that an operation changed: the MemRowSet if set is nil, otherwise the delta mem
// store of a rowset.
type target struct{ set *rowset.DiskRowSet }

// active returns the store that has the effect of an operation and is not in files; nil if there is
// none. An operation during a flush or compaction changed two stores, an input and an output, of
// which the superblock has one.
func (p *player) active(r *kudupb.OperationResultPB) (found *target, err error) {
	if r.GetSkipOnReplay() || r.FailedStatus != nil {
		return nil, nil
	}
	if n := len(r.MutatedStores); n > 2 {
		return nil, fault.Corruptf("%d stores", n)
	}
	for _, s := range r.MutatedStores {
		var t target
		switch {
		case s.GetRsTxnId() >= 0:
			return nil, fault.Unsupportedf("a row of transaction %d", s.GetRsTxnId())
		case s.GetMrsId() >= 0:
			if s.GetMrsId() <= p.t.super.GetLastDurableMrsId() {
				continue
			}
			if p.firstMRS < 0 || s.GetMrsId() < p.firstMRS {
				p.firstMRS = s.GetMrsId()
			}
		default:
			if t.set = p.t.byID[uint64(s.GetRsId())]; t.set == nil || s.GetDmsId() <= t.set.Metadata().LastDurableDMS {
				continue
			}
			if first, ok := p.firstDMS[t.set]; !ok || s.GetDmsId() < first {
				p.firstDMS[t.set] = s.GetDmsId()
			}
		}
		if found != nil {
			return nil, fault.Corruptf("two stores that are not in files")
		}
		found = &t
	}
	return found, nil
}

// repeat applies the operation on a row as the server did, unless the effect is in files.
func (p *player) repeat(r *kuduwal.Row, result *kudupb.OperationResultPB, ts mvcc.Timestamp, at lsn.LSN) error {
	to, err := p.active(result)
	if to == nil || err != nil {
		return err
	}
	if r.Problem != "" {
		return fault.Corruptf("%s, and yet the result is a success", r.Problem)
	}
	if to.set == nil {
		if r.Kind == kuduwal.Insert || r.Kind == kuduwal.Upsert && !p.t.mem.Live(r.Key) {
			return p.insert(r, ts, at)
		}
		return p.change(r, nil, 0, ts, at)
	}
	row, found, err := p.lookUp(to.set, bloom.MakeProbe(r.Key))
	if err != nil {
		return err
	}
	if !found || r.Kind == kuduwal.Insert {
		return fault.Corruptf("the result names rowset %d, which does not have the key", to.set.Metadata().ID)
	}
	if live, err := to.set.Live(row); err != nil {
		return err
	} else if !live {
		return fault.Corruptf("the result names rowset %d, where the row is deleted", to.set.Metadata().ID)
	}
	return p.change(r, to.set, row, ts, at)
}

// decide applies the operation on a row as the server would if it began. Source: tablet spec §12.4.
func (p *player) decide(r *kuduwal.Row, ts mvcc.Timestamp, at lsn.LSN) error {
	if r.Problem != "" {
		return nil
	}
	set, row, live, err := p.find(r.Key)
	switch {
	case err != nil:
		return err
	case !live && (r.Kind == kuduwal.Insert || r.Kind == kuduwal.Upsert):
		return p.insert(r, ts, at)
	case !live || r.Kind == kuduwal.Insert:
		return nil
	}
	if err = p.change(r, set, row, ts, at); errors.Is(err, errImmutable) {
		err = nil // the server refuses the row
	}
	return err
}

// find returns where the live row with a key is, set being nil for the MemRowSet.
func (p *player) find(key []byte) (set *rowset.DiskRowSet, row batch.Ordinal, live bool, err error) {
	if p.t.mem.Live(key) {
		return nil, 0, true, nil
	}
	probe := bloom.MakeProbe(key)
	for _, set := range p.t.tree.Candidates(nil, key) {
		row, found, err := p.lookUp(set, probe)
		if found && err == nil {
			found, err = set.Live(row)
		}
		if found || err != nil {
			return set, row, found, err
		}
	}
	return nil, 0, false, nil
}

// lookUp finds the row of a rowset with a key, if its bloom file is damaged, by the key index
// alone.
func (p *player) lookUp(set *rowset.DiskRowSet, probe bloom.Probe) (row batch.Ordinal, found bool, err error) {
	if !p.noBloom[set] {
		if row, found, err = set.Find(probe); !errors.Is(err, fault.ErrCorrupt) {
			return row, found, err
		}
	}
	row, found, indexErr := set.FindByIndex(probe.Key)
	if indexErr == nil && err != nil {
		p.noBloom[set] = true
		p.t.warn(fmt.Sprintf("tablet %s: the bloom file of rowset %d is not used: %v", p.t.id, set.Metadata().ID, err))
	}
	return row, found, indexErr
}

// insert adds a row to the MemRowSet.
func (p *player) insert(r *kuduwal.Row, ts mvcc.Timestamp, at lsn.LSN) error {
	if p.t.mem.Live(r.Key) {
		return fault.Corruptf("insert of a key that exists")
	}
	p.list = p.decoder.Image(r, p.list[:0])
	p.t.mem.Insert(r.Key, ts, at, p.list)
	return nil
}

// errImmutable is the reason why an upsert is refused.
var errImmutable = fault.Corruptf("upsert of an immutable column")

// change changes a live row of a rowset, or of the MemRowSet if set is nil.
func (p *player) change(
	r *kuduwal.Row, set *rowset.DiskRowSet, row batch.Ordinal, ts mvcc.Timestamp, at lsn.LSN,
) error {
	list, ok := p.decoder.Change(r, p.list[:0])
	switch {
	case !ok:
		return errImmutable
	case len(list) == 0:
		return nil
	}
	p.list = list
	if set != nil {
		set.Apply(row, ts, at, list)
	} else if !p.t.mem.Mutate(r.Key, ts, at, list) {
		return fault.Corruptf("%v of a key that does not exist", r.Kind)
	}
	return nil
}
