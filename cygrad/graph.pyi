from cygrad.nets import *
