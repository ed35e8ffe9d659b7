package fencemodel

import "testing"

func TestNodeAcquires(t *testing.T) {
	for _, test := range []struct {
		name     string
		node     Node
		proposal Counter
		after    Node
		fence    Counter
	}{
		{"knows nothing", Node{}, 0, Node{1, 1}, 1},
		{"free", Node{0, 4}, 0, Node{1, 5}, 5},
		{"free, with a proposal behind", Node{0, 4}, 3, Node{1, 5}, 5},
		{"free, with a proposal ahead", Node{0, 4}, 9, Node{1, 9}, 9},
		{"owned already", Node{1, 4}, 9, Node{1, 4}, 4},
		{"another's", Node{2, 4}, 9, Node{2, 4}, 0},
	} {
		if after, fence := test.node.Acquire(1, test.proposal); after != test.after || fence != test.fence {
			t.Errorf("%s: %v and fence %d, want %v and %d", test.name, after, fence, test.after, test.fence)
		}
	}
}

func TestNodeStamps(t *testing.T) {
	for _, test := range []struct {
		name  string
		node  Node
		after Node
		good  bool
	}{
		{"behind", Node{1, 4}, Node{1, 5}, true},
		{"there already", Node{1, 5}, Node{1, 5}, true},
		{"ahead", Node{1, 6}, Node{1, 6}, false},
		{"free", Node{0, 4}, Node{0, 4}, false},
		{"another's", Node{2, 4}, Node{2, 4}, false},
		{"another's, there already", Node{2, 5}, Node{2, 5}, false},
	} {
		if after, good := test.node.Stamp(1, 5); after != test.after || good != test.good {
			t.Errorf("%s: %v and %v, want %v and %v", test.name, after, good, test.after, test.good)
		}
	}
}

func TestNodeReleases(t *testing.T) {
	for _, test := range []struct {
		node, after Node
		ours        bool
	}{
		{Node{1, 4}, Node{0, 4}, true},
		{Node{2, 4}, Node{2, 4}, false},
		{Node{0, 4}, Node{0, 4}, false},
	} {
		if after, ours := test.node.Release(1); after != test.after || ours != test.ours {
			t.Errorf("%v: %v and %v, want %v and %v", test.node, after, ours, test.after, test.ours)
		}
	}
}
