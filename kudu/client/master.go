package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/kudurpc"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
)

// masters are the cluster's masters, of which one leads.
type masters struct {
	c    *Client
	turn chan struct{} // has an element while no one looks for the leader

	mu      sync.Mutex
	known   []string // addresses
	leader  string   // empty: unknown
	finding int      // how often a leader was found
	cluster string   // ID
}

// maxMasters bounds the addresses that masters give. Clusters have up to five masters, each with few
// addresses.
const maxMasters = 64

func newMasters(c *Client) *masters {
	m := &masters{c: c, turn: make(chan struct{}, 1)}
	m.turn <- struct{}{}
	return m
}

// add adds the address of a master. It reports whether it is new.
func (m *masters) add(address string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Contains(m.known, address) || len(m.known) == maxMasters {
		return false
	}
	m.known = append(m.known, address)
	return true
}

// current returns the leader, or "", and the number of times that one was found.
func (m *masters) current() (leader string, finding int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leader, m.finding
}

// drop forgets the leader that was found the given number of times before, if it is still the last.
func (m *masters) drop(finding int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.finding == finding {
		m.leader = ""
	}
}

// find returns the leader. If it is unknown, find asks all masters, once. Finding the leader brings
// new tokens. Errors: *noLeader.
func (m *masters) find(ctx context.Context) (leader string, finding int, err error) {
	if leader, finding = m.current(); leader != "" {
		return leader, finding, nil
	}
	select {
	case <-m.turn:
		defer func() { m.turn <- struct{}{} }()
	case <-ctx.Done():
		return "", 0, fmt.Errorf("search for the leading master: %w", ctx.Err())
	}
	if leader, finding = m.current(); leader != "" { // someone else has found it meanwhile
		return leader, finding, nil
	}
	leader, answer, err := m.ask(ctx)
	if err != nil {
		return "", 0, err
	}
	return m.follow(leader, answer)
}

// follow makes a master the leader, by its answer.
func (m *masters) follow(leader string, answer *pb.ConnectToMasterResponsePB) (string, int, error) {
	if err := m.c.pool.Trust(answer.CaCertDer, answer.AuthnToken); err != nil {
		return "", 0, fmt.Errorf("master %s: %w", leader, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cluster != "" && m.cluster != answer.GetClusterId() {
		return "", 0, fmt.Errorf("master %s leads cluster %s, it was cluster %s: connect again", leader,
			answer.GetClusterId(), m.cluster)
	}
	m.leader, m.cluster = leader, answer.GetClusterId()
	m.finding++
	return leader, m.finding, nil
}

// ask asks all masters, also masters that others name, and returns the leader's answer. Errors:
// *noLeader.
func (m *masters) ask(ctx context.Context) (string, *pb.ConnectToMasterResponsePB, error) {
	asked := map[string]error{}
	for {
		m.mu.Lock()
		var next []string
		for _, address := range m.known {
			if _, done := asked[address]; !done {
				next = append(next, address)
			}
		}
		m.mu.Unlock()
		if len(next) == 0 {
			return "", nil, &noLeader{asked}
		}
		if leader, answer := m.askEach(ctx, next, asked); answer != nil {
			return leader, answer, nil
		}
	}
}

// askEach asks masters at the same time until one says that it leads. It adds the others' errors to
// asked, nil for those that follow.
func (m *masters) askEach(
	ctx context.Context, next []string, asked map[string]error,
) (string, *pb.ConnectToMasterResponsePB) {
	type reply struct {
		address string
		answer  *pb.ConnectToMasterResponsePB
		err     error
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	// Once one leads, the others need not answer. One that hangs holds up the next search, which may
	// find a new leader, for this time only.
	ctx, cancel := context.WithTimeout(ctx, m.c.o.ask)
	defer cancel()
	replies := make(chan reply, len(next))
	for _, address := range next {
		wg.Go(func() {
			r := reply{address: address, answer: &pb.ConnectToMasterResponsePB{}}
			r.err = m.c.pool.DoPrimary(ctx, address, &kudurpc.Call{Service: kudurpc.MasterService,
				Method: "ConnectToMaster", Request: &pb.ConnectToMasterRequestPB{}, Response: r.answer,
				Features: []uint32{uint32(pb.MasterFeature_CONNECT_TO_MASTER)}})
			replies <- r
		})
	}
	for range next {
		r := <-replies
		asked[r.address] = r.err
		if r.err != nil {
			continue
		}
		for _, address := range addresses(r.answer.MasterAddrs) {
			m.add(address)
		}
		if r.answer.GetRole() == int32(pb.Role_LEADER) {
			return r.address, r.answer
		}
	}
	return "", nil
}

// noLeader is the error of a search for the leading master.
type noLeader struct {
	asked map[string]error // by address; nil for a follower
}

func (e *noLeader) Error() string {
	var parts []string
	for _, address := range slices.Sorted(maps.Keys(e.asked)) {
		if err := e.asked[address]; err != nil {
			parts = append(parts, err.Error())
		} else {
			parts = append(parts, "master "+address+" follows")
		}
	}
	return "no master leads: " + strings.Join(parts, "; ")
}

func (e *noLeader) Unwrap() (errs []error) {
	for _, address := range slices.Sorted(maps.Keys(e.asked)) {
		if err := e.asked[address]; err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// worthAnother reports whether another search for the leader may find it: not if all masters refuse
// for good.
func worthAnother(err error) bool {
	var e *noLeader
	if !errors.As(err, &e) {
		return false
	}
	for _, err := range e.asked {
		if err == nil || kudurpc.ClassOf(err) != kudurpc.Final {
			return true
		}
	}
	return false
}

// master makes a call to the leading master, and repeats it with the next leader if need be. unsure
// reports whether an attempt may have been carried out without an answer, before the last one.
func (c *Client) master(
	ctx context.Context, method string, request, response proto.Message, features ...uint32,
) (unsure bool, err error) {
	call := &kudurpc.Call{Service: kudurpc.MasterService, Method: method, Request: request, Response: response,
		Features: features}
	for a := (attempts{c: c}); ; {
		leader, finding, err := c.masters.find(ctx)
		if err != nil && !worthAnother(err) {
			return unsure, a.last(ctx, err)
		}
		if err == nil {
			err = c.pool.DoPrimary(ctx, leader, call)
			switch kudurpc.ClassOf(err) {
			case kudurpc.Unreachable, kudurpc.NotServing:
				c.masters.drop(finding)
			case kudurpc.Busy:
			default:
				return unsure, err
			}
			unsure = unsure || wasSent(err)
		}
		if err := a.again(ctx, err); err != nil {
			return unsure, err
		}
	}
}

// wasSent reports whether a server may have carried out a call without an answer.
func wasSent(err error) bool {
	e, ok := errors.AsType[*kudurpc.Error](err)
	return ok && e.Sent && kudurpc.ClassOf(err) == kudurpc.Unreachable
}

// findLeader returns once the leader is known. If it is not, that brings a new authn token.
func (c *Client) findLeader(ctx context.Context) error {
	for a := (attempts{c: c}); ; {
		_, _, err := c.masters.find(ctx)
		if err == nil || !worthAnother(err) {
			return a.last(ctx, err)
		}
		if err := a.again(ctx, err); err != nil {
			return err
		}
	}
}
