/* An endpoint without a connection, with its queue and addresses; all of libfabric that the programs here need. */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the programs end with. */
enum { SOUND = 0, FAULTY = 1, CANNOT = 77 };

#define DO(call)                                             \
  do {                                                       \
    int did = (int)(call);                                   \
    if (did < 0) {                                           \
      fprintf(stderr, "%s: %s\n", #call, fi_strerror(-did)); \
      exit(CANNOT);                                          \
    }                                                        \
  } while (0)

struct provider {
  struct fi_info* info;
  struct fid_fabric* fabric;
  struct fid_domain* domain;
  struct fid_cq* queue;
};

struct endpoint {
  struct fid_ep* ep;
  struct fid_av* addresses;
  char name[128];
  size_t bytes;
};

static struct provider open_provider(const char* name, enum fi_wait_obj wait) {
  struct provider made = {0};
  struct fi_info* hints = fi_allocinfo();
  hints->caps = FI_MSG;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->fabric_attr->prov_name = strdup(name);
  DO(fi_getinfo(FI_VERSION(1, 11), NULL, NULL, 0, hints, &made.info));
  DO(fi_fabric(made.info->fabric_attr, &made.fabric, NULL));
  DO(fi_domain(made.fabric, made.info, &made.domain, NULL));
  struct fi_cq_attr attributes = {.format = FI_CQ_FORMAT_DATA, .size = 64, .wait_obj = wait};
  DO(fi_cq_open(made.domain, &attributes, &made.queue, NULL));
  return made;
}

static struct endpoint make_endpoint(struct provider* provider) {
  struct endpoint made = {.bytes = sizeof made.name};
  struct fi_av_attr attributes = {.type = FI_AV_TABLE};
  DO(fi_endpoint(provider->domain, provider->info, &made.ep, NULL));
  DO(fi_av_open(provider->domain, &attributes, &made.addresses, NULL));
  DO(fi_ep_bind(made.ep, &made.addresses->fid, 0));
  DO(fi_ep_bind(made.ep, &provider->queue->fid, FI_TRANSMIT | FI_RECV));
  DO(fi_enable(made.ep));
  DO(fi_getname(&made.ep->fid, made.name, &made.bytes));
  return made;
}
