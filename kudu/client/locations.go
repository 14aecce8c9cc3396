package client

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
)

// locations are where a table's tablets are, as the masters said last.
type locations struct {
	c    *Client
	id   string        // of the table
	turn chan struct{} // has an element while no one asks the masters

	mu   sync.Mutex
	last *tablets // nil: not yet asked
}

// tablets are the tablets of a table. It is immutable.
type tablets struct {
	all     []*tablet // ascending by start; no two overlap, but there may be gaps
	expires time.Time
}

// tablet is a part of a table. It is immutable.
type tablet struct {
	id         string
	start, end []byte // partition keys from start, before end; an empty end is none
	buckets    []int32
	replicas   []replica
}

// replica is a server that has a tablet.
type replica struct {
	server    string // ID
	addresses []string
	leads     bool // in the masters' view, which may be old
}

// has reports whether a partition key belongs to the tablet.
func (t *tablet) has(key []byte) bool {
	return bytes.Compare(key, t.start) >= 0 && (len(t.end) == 0 || bytes.Compare(key, t.end) < 0)
}

// find returns the tablet of a partition key, or nil if none has it.
func (s *tablets) find(key []byte) *tablet {
	i, exact := slices.BinarySearchFunc(s.all, key, func(t *tablet, key []byte) int { return bytes.Compare(t.start, key) })
	if !exact {
		i--
	}
	if i < 0 || !s.all[i].has(key) {
		return nil
	}
	return s.all[i]
}

// byID returns a tablet, or nil if the table no longer has it.
func (s *tablets) byID(id string) *tablet {
	if i := slices.IndexFunc(s.all, func(t *tablet) bool { return t.id == id }); i >= 0 {
		return s.all[i]
	}
	return nil
}

func newLocations(c *Client, id string) *locations {
	l := &locations{c: c, id: id, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l
}

// tablets returns the tablets of t, which it asks the masters for if they have not said them, or if
// it was too long ago.
func (t *Table) tablets(ctx context.Context) (*tablets, error) {
	if s := t.locations.current(); s != nil && time.Now().Before(s.expires) {
		return s, nil
	}
	return t.refresh(ctx, t.locations.current())
}

func (l *locations) current() *tablets {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// refresh returns tablets that are newer than old, which have turned out to be wrong: it asks the
// masters, unless that was done meanwhile.
func (t *Table) refresh(ctx context.Context, old *tablets) (*tablets, error) {
	l := t.locations
	select {
	case <-l.turn:
		defer func() { l.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, t.wrap(fmt.Errorf("lookup of tablets: %w", ctx.Err()))
	}
	if s := l.current(); s != old {
		return s, nil
	}
	// Without keys and a number, all tablets come at once.
	var m pb.GetTableLocationsResponsePB
	_, err := l.c.master(ctx, "GetTableLocations", &pb.GetTableLocationsRequestPB{Table: t.identifier(),
		InternTsInfosInResponse: proto.Bool(true)}, &m)
	if err != nil {
		return nil, t.wrap(err)
	}
	s, err := newTablets(&m)
	if err != nil {
		return nil, t.wrap(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = s
	return s, nil
}

// newTablets returns tablets as a master describes them. Errors: ErrCorrupt.
func newTablets(m *pb.GetTableLocationsResponsePB) (*tablets, error) {
	s := &tablets{expires: time.Now().Add(time.Duration(m.GetTtlMillis()) * time.Millisecond)}
	for _, location := range m.TabletLocations {
		t := &tablet{id: string(location.TabletId), start: location.GetPartition().GetPartitionKeyStart(),
			end: location.GetPartition().GetPartitionKeyEnd(), buckets: location.GetPartition().GetHashBuckets()}
		for _, r := range location.InternedReplicas {
			if int(r.GetTsInfoIdx()) >= len(m.TsInfos) {
				return nil, fault.Corruptf("a replica of tablet %s is at server %d of %d", t.id, r.GetTsInfoIdx(), len(m.TsInfos))
			}
			server := m.TsInfos[r.GetTsInfoIdx()]
			t.replicas = append(t.replicas, replica{string(server.PermanentUuid), addresses(server.RpcAddresses),
				r.GetRole() == int32(pb.Role_LEADER)})
		}
		s.all = append(s.all, t)
	}
	slices.SortStableFunc(s.all, func(a, b *tablet) int { return bytes.Compare(a.start, b.start) })
	for i, t := range s.all {
		if len(t.end) > 0 && bytes.Compare(t.start, t.end) >= 0 {
			return nil, fault.Corruptf("tablet %s has no partition keys", t.id)
		}
		if i > 0 && s.all[i-1].has(t.start) {
			return nil, fault.Corruptf("tablets %s and %s overlap", s.all[i-1].id, t.id)
		}
	}
	return s, nil
}

// Tablets returns the IDs of the table's tablets as the masters know them now, in the order of their
// partition keys.
func (t *Table) Tablets(ctx context.Context) ([]string, error) {
	ctx, cancel := t.c.limit(ctx)
	defer cancel()
	if _, err := t.refresh(ctx, t.locations.current()); err != nil {
		return nil, t.wrap(err)
	}
	ids, err := t.chosen(ctx, "", nil)
	return ids, t.wrap(err)
}
